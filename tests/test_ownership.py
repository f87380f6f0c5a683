"""A model's instances have conversations, and a policy says what becomes of those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from django.db.models import Prefetch, ProtectedError
from django.test import Client
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.urls import path

from agent_memory.approvals import Approve
from agent_memory.exceptions import ConversationConflict, InvalidParticipant
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, ToolCall
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.ownership import ANONYMISE, DELETE, KEEP, HasConversations, on_delete_of
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.signals import conversation_cleared
from agent_memory.stores import ConversationStore
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import override_store
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.contract.pausing import asking_turn
from tests.testapp.models import Branch, Club, Patient, Regular, Visitor

pytestmark = pytest.mark.django_db

store = DatabaseConversationStore()
site = admin.AdminSite()
site.register(Patient)
urlpatterns = [path("admin/", site.urls)]


def make(model: Any, name: str = "one", **fields: Any) -> Any:
    """Return a saved instance with a key of its own."""
    return model.objects.create(**({"code": name} if issubclass(model, Visitor) else {}), **fields)


def talk(conversation_id: str, *speakers: Any) -> None:
    """Write a turn of each speaker; the first owns the conversation."""
    for speaker in speakers:
        store.append(Heading(conversation_id, Participant.of(speaker), "coach"), plain_turn())


def owner(conversation_id: str) -> Participant | None:
    stored = store.get(conversation_id)
    assert stored is not None
    return stored.participant


def speakers(conversation_id: str) -> list[Participant | None]:
    """Return who said what in a conversation, oldest first."""
    page = store.paginate_conversation_messages(conversation_id)
    return [message.participant for message in page if message.role == "user"][::-1]


def ids(conversations: Any) -> set[str]:
    return {conversation.pk for conversation in conversations}


# The conversations of an instance.


@pytest.mark.parametrize("model", [Club, Branch, Patient, Visitor, Regular])
def test_an_instance_has_its_conversations_as_a_queryset(model: Any) -> None:
    one, two = make(model, "one"), make(model, "two")
    talk("a", one, two)
    talk("b", one)
    talk("c", two)
    store.reserve("reserved", participant=one, create=True)
    assert ids(one.conversations) == ids(one.conversations.all()) == {"a", "b"}
    assert one.conversations.count() == 2
    assert one.conversations.filter(turn_count=2).get().pk == "a"
    assert [each.pk for each in one.conversations.order_by("-pk")] == ["b", "a"]
    assert one.conversations.first().participant == one


def test_a_child_and_its_parent_have_conversations_of_their_own() -> None:
    branch = make(Branch)
    talk("branch's", branch)
    talk("club's", branch.club_ptr)
    assert ids(branch.conversations) == {"branch's"}
    assert ids(branch.club_ptr.conversations) == {"club's"}


def test_conversations_that_are_opened_later_are_seen() -> None:
    club = make(Club)
    assert not club.conversations.exists()
    talk("a", club)
    assert ids(club.conversations) == {"a"}


def test_an_instance_that_is_not_saved_has_none_and_says_so() -> None:
    with pytest.raises(InvalidParticipant, match="save it first"):
        _ = Club().conversations


def test_conversations_are_not_assigned() -> None:
    club = make(Club)
    with pytest.raises(AttributeError, match="transfer_conversation"):
        club.conversations = []


@pytest.mark.parametrize("model", [Club, Branch, Patient, Regular])
@pytest.mark.parametrize("lookup", ["conversations", Prefetch("conversations")])
def test_the_conversations_of_many_are_prefetched_in_one_query(model: Any, lookup: Any) -> None:
    for name in "abc":
        talk(name, make(model, name))
    make(model, "silent")
    with CaptureQueriesContext(connection) as captured:
        read = list(model.objects.order_by("pk").prefetch_related(lookup))
    assert len(captured) == 2
    with CaptureQueriesContext(connection) as captured:
        found = [(sorted(ids(each.conversations.all())), len(each.conversations)) for each in read]
        assert [each.conversations.count() for each in read] == [len(names) for names, _ in found]
    assert not captured.captured_queries
    assert sorted(found) == [([], 0), (["a"], 1), (["b"], 1), (["c"], 1)]
    for each in read:
        assert ids(each.conversations.filter(pk="a")) == ids(each.conversations) & {"a"}


def test_what_is_prefetched_may_be_filtered_and_named() -> None:
    club = make(Club)
    for name in "abc":
        talk(name, club)
    some = Conversation.objects.exclude(pk="b").order_by("-pk")
    (read,) = Club.objects.prefetch_related(Prefetch("conversations", some))
    assert [each.pk for each in read.conversations.all()] == ["c", "a"]
    assert ids(read.conversations.filter(turn_count=1)) == {"a", "c"}
    (read,) = Club.objects.prefetch_related(Prefetch("conversations", some, to_attr="some"))
    assert [each.pk for each in read.some] == ["c", "a"]
    assert ids(read.conversations) == {"a", "b", "c"}


def test_what_lies_behind_conversations_is_prefetched_and_so_are_they_behind_others() -> None:
    patient = make(Patient, club=make(Club))
    talk("a", patient)
    lookups = "patient_set__conversations__messages"
    with CaptureQueriesContext(connection) as captured:
        (club,) = Club.objects.prefetch_related(lookups)
        (read,) = club.patient_set.all()
        assert [len(each.messages.all()) for each in read.conversations.all()] == [2]
    assert len(captured) == 4


# Policies.


def by_itself(instance: Any) -> None:
    type(instance).objects.get(pk=instance.pk).delete()


def in_a_task(instance: Any) -> None:
    async_to_sync(instance.adelete)()


def by_a_queryset(instance: Any) -> None:
    type(instance).objects.filter(pk=instance.pk).delete()


def by_a_cascade(instance: Any) -> None:
    club = make(Club)
    Patient.objects.filter(pk=instance.pk).update(club=club)
    club.delete()


def by_an_action_of_the_admin(instance: Any) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("staff"))
    url = f"/admin/testapp/{instance._meta.model_name}/"
    data = {"action": "delete_selected", "_selected_action": [instance.pk], "post": "yes"}
    assert client.post(url, data).status_code == 302


WAYS = [by_itself, in_a_task, by_a_queryset, by_a_cascade, by_an_action_of_the_admin]


@pytest.fixture
def cleared() -> Iterator[list[str]]:
    """Return the conversations that were said to be cleared."""
    found: list[str] = []

    def note(conversation_id: str, **kwargs: Any) -> None:
        found.append(conversation_id)

    conversation_cleared.connect(note)
    yield found
    conversation_cleared.disconnect(note)


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("delete", WAYS)
def test_a_policy_is_followed_however_an_instance_is_deleted(
    delete: Callable[[Any], None],
) -> None:
    gone, other = make(Patient), make(Patient)
    talk("a", gone, other)
    talk("b", other, gone)
    delete(gone)
    assert not Patient.objects.filter(pk=gone.pk).exists()
    assert (owner("a"), speakers("a")) == (None, [None, Participant.of(other)])
    assert (owner("b"), speakers("b")) == (Participant.of(other), [Participant.of(other), None])


def test_by_default_conversations_stay_under_the_key_of_who_is_gone() -> None:
    club = make(Club)
    talk("a", club)
    gone = Participant.of_row(club)
    club.delete()
    assert (owner("a"), speakers("a")) == (gone, [gone])
    assert Conversation.objects.get().participant is None
    assert ids(Conversation.objects.for_participant(gone)) == {"a"}
    assert not store.conversation_belongs_to("a", None)


@isolate_apps("tests.testapp")
def test_the_default_costs_a_deletion_nothing() -> None:
    class Kept(HasConversations, models.Model):
        class Meta:
            app_label = "testapp"

    assert models.signals.post_delete.has_listeners(Patient)
    assert not models.signals.post_delete.has_listeners(Kept)


def test_anonymised_conversations_are_nobodys_and_lose_nothing_else() -> None:
    patient = make(Patient)
    talk("a", patient)
    turn = asking_turn(calls=1)
    store.append("a", turn, reservation=store.reserve("a"))
    store.decide("a", {"call-0": Approve()}, decided_by=patient)
    before = Conversation.objects.values().get()
    patient.delete()
    nobody = {"participant_type_id": None, "participant_key": ""}
    assert Conversation.objects.values().get() == before | nobody
    assert ConversationMessage.objects.filter(**nobody).count() == 4
    approval = ToolApproval.objects.get()
    assert (approval.decided_by, approval.decided_by_key) == (None, "")
    assert approval.status == "approved"


def test_deleted_conversations_are_cleared_and_what_was_said_elsewhere_is_nobodys(
    cleared: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    visitor, other = make(Visitor, "one"), Participant("testapp.visitor", "One ")
    talk("a", visitor, other)
    talk("b", visitor)
    talk("c", other, visitor)
    talk("d", Participant("testapp.club", "one"))
    with django_capture_on_commit_callbacks(execute=True):
        visitor.delete()
    assert sorted(cleared) == ["a", "b"]
    assert ids(Conversation.objects.all()) == {"c", "d"}
    assert speakers("c") == [other, None]
    assert owner("d") == Participant("testapp.club", "one")
    assert ConversationMessage.objects.count() == 6


def test_a_policy_holds_for_a_proxy_too() -> None:
    regular = make(Regular)
    talk("a", regular)
    regular.delete()
    assert not Conversation.objects.exists()


def test_a_row_that_was_never_loaded_is_followed_too() -> None:
    talk("a", make(Visitor, "one"))
    Visitor(code="one").delete()
    assert not Conversation.objects.exists()


def test_a_deletion_that_is_rolled_back_leaves_conversations_as_they_are() -> None:
    patient, visitor = make(Patient), make(Visitor)
    talk("a", patient)
    talk("b", visitor)
    with transaction.atomic():
        patient.delete()
        visitor.delete()
        assert not Conversation.objects.filter(participant_type__isnull=False).exists()
        transaction.set_rollback(True)
    for instance in (Patient.objects.get(), Visitor.objects.get()):
        assert instance.conversations.get().participant == instance


@isolate_apps("tests.testapp")
def test_a_policy_may_be_a_function() -> None:
    seen = []

    def note(store: ConversationStore, gone: Participant) -> None:
        seen.append((store, gone))

    class Guest(Visitor):
        conversations_on_delete = note

        class Meta:
            app_label = "testapp"
            proxy = True

    with override_store(store):
        Guest.objects.create(code="one").delete()
    assert seen == [(store, Participant("testapp.visitor", "one"))]


@pytest.mark.parametrize("wrong", ["delete", None])
def test_a_policy_that_is_none_is_refused_when_the_class_is_made(wrong: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="conversations of Guest is KEEP, ANONYMISE"):

        class Guest(HasConversations):
            conversations_on_delete = wrong


def test_a_model_of_others_may_have_a_policy() -> None:
    ada, bob = User.objects.create(username="ada"), User.objects.create(username="bob")
    talk("a", ada)
    talk("b", bob)
    on_delete_of(User, DELETE)
    ada.delete()
    on_delete_of(User, ANONYMISE)
    bob.delete()
    assert (ids(Conversation.objects.all()), owner("b")) == ({"b"}, None)
    on_delete_of(User, KEEP)
    assert not models.signals.post_delete.has_listeners(User)


# A model that is gone.


@pytest.fixture
def customer() -> Iterator[Participant]:
    """Return one whose app was removed, and whose content type is there still."""
    ContentType.objects.create(app_label="shop", model="customer")
    yield Participant("shop.customer", "C-17")
    ContentType.objects.clear_cache()


def remove_stale_types() -> None:
    call_command(
        "remove_stale_contenttypes", include_stale_apps=True, interactive=False, verbosity=0
    )


def test_conversations_of_a_model_that_is_gone_are_read_and_gone_on_with(
    customer: Participant,
) -> None:
    talk("a", customer)
    store.append("a", plain_turn(), reservation=store.reserve("a", participant=customer))
    assert Conversation.objects.get().participant is None
    assert ids(Conversation.objects.for_participant(customer)) == {"a"}
    assert [each.id for each in store.list_conversations(customer)] == ["a"]
    assert store.conversation_belongs_to("a", customer)
    assert len(store.load("a")) == 4


def test_a_content_type_is_not_removed_while_conversations_are_filed_under_it(
    customer: Participant,
) -> None:
    other = make(Club)
    for name, speaker in (("a", customer), ("b", other)):
        talk(name, speaker, customer)
    with pytest.raises(ProtectedError):
        remove_stale_types()
    assert owner("a") == customer
    store.clear_conversations(customer)
    with pytest.raises(ProtectedError):
        remove_stale_types()
    store.anonymise_participant(customer)
    remove_stale_types()
    assert not ContentType.objects.filter(app_label="shop").exists()
    assert speakers("b") == [Participant.of(other), None]


def test_a_model_that_is_renamed_takes_its_conversations_along(customer: Participant) -> None:
    talk("a", customer)
    ContentType.objects.filter(model="customer").update(model="client")
    ContentType.objects.clear_cache()
    assert owner("a") == Participant("shop.client", "C-17")
    assert store.latest_conversation_id(Participant("shop.client", "C-17"), "coach") == "a"


# A turn that runs meanwhile.


def test_a_turn_that_runs_is_saved_where_conversations_stay() -> None:
    club = make(Club)
    talk("a", club)
    running, gone = store.reserve("a"), Participant.of(club)
    club.delete()
    store.append(Heading("a", gone, "coach"), plain_turn(), reservation=running)
    assert speakers("a") == [gone, gone]


@pytest.mark.parametrize("model", [Patient, Visitor])
def test_a_turn_that_runs_is_not_saved_otherwise(model: Any) -> None:
    instance = make(model)
    talk("a", instance)
    heading = Heading("a", Participant.of(instance), "coach")
    running = store.reserve("a")
    instance.delete()
    with pytest.raises(ConversationConflict):
        store.append(heading, plain_turn(), reservation=running)
    assert not ConversationMessage.objects.filter(participant_type__isnull=False).exists()


@pytest.mark.parametrize("model", [Patient, Visitor])
def test_a_first_turn_of_a_given_id_is_not_saved_either(model: Any) -> None:
    instance = make(model)
    heading = Heading("a", Participant.of(instance), "coach")
    running = store.reserve("a", participant=instance, create=True)
    instance.delete()
    with pytest.raises(ConversationConflict):
        store.append(heading, plain_turn(), reservation=running)
    assert not Conversation.objects.exists()


def test_what_its_tools_did_is_recorded_as_nobodys() -> None:
    patient = make(Patient)
    heading = Heading("a", Participant.of(patient), "coach")
    running = store.reserve("a", participant=patient, create=True)
    step = Step(items=(ToolCall(id="1", name="look"),), finish_reason="tool_calls")
    entry = JournalEntry(0, -1, step, heading, Message("user", "Look."))
    assert store.journal(running, entry, 60)
    patient.delete()
    assert ConversationMessage.objects.earliest("position").content == "Look."
    assert (owner("a"), speakers("a")) == (None, [None])
    with pytest.raises(ConversationConflict):
        store.append(heading, plain_turn(), reservation=running)


# Another store.


def test_a_policy_is_followed_in_another_store_after_the_commit(
    django_capture_on_commit_callbacks: Any,
) -> None:
    elsewhere = InMemoryConversationStore()
    visitor = make(Visitor)
    elsewhere.append(Heading("a", Participant.of(visitor), "coach"), plain_turn())
    with override_store(elsewhere):
        with django_capture_on_commit_callbacks() as callbacks:
            visitor.delete()
        assert elsewhere.get("a") is not None
        (follow,) = callbacks
        follow()
    assert elsewhere.get("a") is None


# Migrations.


def test_a_model_with_the_mixin_is_migrated_like_any_other_and_its_past_has_no_policy() -> None:
    state = ProjectState()
    for model in (Club, Branch, Patient, Visitor, Regular):
        state.add_model(ModelState.from_model(model))
    text, imports = MigrationWriter.serialize(state.models["testapp", "visitor"].bases[0])
    assert text == "agent_memory.ownership.HasConversations"
    assert imports == {"import agent_memory.ownership"}
    past = state.apps.get_model("testapp", "Visitor")
    talk("a", make(Visitor, "one"))
    past.objects.all().delete()
    assert store.get("a") is not None
    assert not past.objects.exists()
