"""
Make two databases, use them, and tell as JSON what was seen.

``test_routers`` runs it in a process with ``settings_two_databases``, since
databases are set up once a process.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connections, transaction
from django.test import Client
from django.test.utils import setup_test_environment
from django.utils import timezone

from agent_memory import Agent, RemembersConversations, conversation_store
from agent_memory.approvals import Approve
from agent_memory.messages import Turn
from agent_memory.models import (
    Conversation,
    ConversationAttachment,
    ConversationMessage,
    ToolApproval,
)
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.testing import ScriptedProvider, override_provider
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.contract.pausing import asking_turn
from tests.testapp.models import Patient, Visitor


class Coach(RemembersConversations, Agent):
    pass


def create(alias: str) -> None:
    """Create an empty database, as a test runner does before it migrates."""
    connection = connections[alias]
    name = connection.creation._get_test_db_name()
    connection.creation._create_test_db(0, autoclobber=True, keepdb=False)
    connection.close()
    settings.DATABASES[alias]["NAME"] = connection.settings_dict["NAME"] = name


def destroy(alias: str) -> None:
    connection = connections[alias]
    connection.close()
    connection.creation._destroy_test_db(connection.settings_dict["NAME"], 0)


def refused(work: Any) -> str:
    try:
        work()
    except ValueError as error:
        return str(error)
    return ""


def rows(alias: str) -> list[int]:
    models = (Conversation, ConversationMessage)
    there = connections[alias].introspection.table_names()
    return [m.objects.using(alias).count() for m in models if m._meta.db_table in there]


def use() -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for alias in ("default", "memory"):
        seen[f"tables of {alias}"] = connections[alias].introspection.table_names()
    databases = list(connections)
    seen["checks"] = [str(message) for message in run_checks(databases=databases)]

    User.objects.create_user("first")
    ann = User.objects.create_superuser("ann")
    types = [
        ContentType.objects.db_manager(alias).get_for_model(User).pk
        for alias in ("default", "memory")
    ]
    seen["content types differ"] = types[0] != types[1]

    with override_provider(ScriptedProvider(["Noted.", "Blue."])):
        reply = Coach().for_user(ann).prompt("Remember: blue.")
        with transaction.atomic("default"):
            again = Coach().continue_last_conversation(ann).prompt("Which colour?")
    seen["answers"] = [reply.text, again.text]
    page = conversation_store.paginate_conversation_messages(again.conversation_id)
    seen["page"] = [[row.content, row.participant and row.participant.type] for row in page]
    seen["rows of default"], seen["rows of memory"] = rows("default"), rows("memory")

    row = Conversation.objects.get()
    seen["row is from"] = row._state.db
    seen["participant"] = [row.participant.username, row.participant._state.db]
    prefetched = Conversation.objects.prefetch_related("participant").get()
    with connections["default"].execute_wrapper(fail):
        seen["prefetched"] = prefetched.participant.username
    seen["found by participant"] = list(
        Conversation.objects.for_participant(ann).values_list("pk", flat=True)
    ) == [reply.conversation_id]
    seen["participants of elsewhere"] = refused(
        lambda: Conversation.objects.for_participants(User.objects.all())
    )

    now = timezone.now()
    Conversation.objects.create(id="set", participant=ann, opened_at=now, last_activity=now)
    seen["set"] = Conversation.objects.get(pk="set").participant.username
    foreign = ContentType.objects.db_manager("default").get_for_model(User)
    seen["a type of elsewhere"] = refused(lambda: Conversation(participant_type=foreign))

    setup_test_environment()
    client = Client()
    client.force_login(ann)
    listed = client.get("/admin/agent_memory/conversation/")
    shown = client.get(f"/admin/agent_memory/conversation/{reply.conversation_id}/change/")
    link = f'<a href="/admin/auth/user/{ann.pk}/change/">user: ann</a>'
    seen["admin"] = [link in listed.content.decode(), link in shown.content.decode()]
    sought = client.get("/admin/agent_memory/conversation/", {"q": "ann"})
    seen["admin finds"] = {each.pk for each in sought.context["cl"].result_list} == {row.pk, "set"}
    whole: Any = client.get(f"/admin/agent_memory/conversation/{reply.conversation_id}/json/")
    told = json.loads(whole.getvalue())
    seen["admin downloads"] = [told["participant"]["type"], len(told["messages"])]

    conversation_store.clear(reply.conversation_id)
    seen["rows after clearing"] = rows("memory")
    Conversation.objects.all().delete()
    return seen | waiting(ann) | owned() | gone()


def talk(conversation_id: str, owner: Any, turn: Turn | None = None) -> None:
    conversation_store.append(Heading(conversation_id, Participant.of(owner)), turn or plain_turn())


def waiting(ann: User) -> dict[str, Any]:
    """Return what is seen of a turn that waits for a person."""
    talk("paused", ann, asking_turn(calls=2))
    left = conversation_store.decide("paused", {"call-0": Approve()}, decided_by=ann)
    decided = ToolApproval.objects.exclude(decided_by_type=None).get()
    seen = {
        "waits": [each.id for each in left],
        "waits for ann": ToolApproval.objects.waiting().for_participant(ann).count(),
        "decided by": [decided.decided_by.username, decided._state.db],
    }
    conversation_store.transfer_conversation("paused", None)
    conversation_store.transfer_conversation("paused", ann)
    seen["handed over"] = Conversation.objects.get().participant.username
    conversation_store.anonymise_participant(ann)
    decided.refresh_from_db()
    seen["nobody"] = [Conversation.objects.get().participant, decided.decided_by]
    conversation_store.clear("paused")
    return seen


def owned() -> dict[str, Any]:
    """Return what is seen of the conversations of a model's instances."""
    for name, patient in [(name, Patient.objects.create()) for name in "ab"]:
        talk(name, patient)
    silent = Patient.objects.create()
    read = Patient.objects.exclude(pk=silent.pk).prefetch_related("conversations")
    theirs = sorted((c.pk, c._state.db) for patient in read for c in patient.conversations.all())
    keys = Conversation.objects.filter(
        participant_type__app_label="testapp", participant_type__model="patient"
    ).values_list("participant_key", flat=True)
    seen = {
        "theirs": theirs,
        "who has some": Patient.objects.filter(pk__in=list(keys)).count(),
        "an outer query of elsewhere": refused(lambda: Conversation.objects.for_outer(Patient)),
    }
    Conversation.objects.all().delete()
    Patient.objects.all().delete()
    return seen


def gone() -> dict[str, Any]:
    """Return what is seen of policies, before and after the commit of a deletion."""
    seen = {}
    for model, fields in ((Patient, {}), (Visitor, {"code": "one"})):
        instance = model.objects.create(**fields)
        key = Participant.of_row(instance).key
        talk(model.__name__, instance)
        ConversationAttachment.objects.create(
            conversation_id=model.__name__,
            sha256=key,
            public_id=key,
            size=1,
            data=b"1",
            created_at=timezone.now(),
        )

        def left(name: str = model.__name__, key: str = key) -> list[int]:
            kept = Conversation.objects.filter(pk=name)
            files = ConversationAttachment.objects.filter(conversation_id=name)
            return [kept.count(), kept.filter(participant_key=key).count(), files.count()]

        with transaction.atomic("default"):
            instance.delete()
            transaction.set_rollback(True, using="default")
        rolled_back = left()
        with transaction.atomic("default"):
            model.objects.all().delete()
            before = left()
        seen[f"{model.__name__} is gone"] = [rolled_back, before, left()]
    return seen


def fail(*args: Any) -> None:
    raise AssertionError("The database was asked again.")


def main() -> None:
    with ExitStack() as stack:
        for name in ("default", "memory"):
            create(name)
            stack.callback(destroy, name)
        call_command("migrate", verbosity=0, run_syncdb=True)
        call_command("migrate", "agent_memory", database="memory", verbosity=0)
        json.dump(use(), sys.stdout)
