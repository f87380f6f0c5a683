"""Conversations are found by their participants, whatever kind of key those have."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Count, Exists, Subquery
from django.utils import timezone

from agent_memory.exceptions import InvalidParticipant
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.participants import Participant
from agent_memory.querysets import KeyOf
from tests.testapp.models import Crew, Escalation, Log, Member, Place, Ship, Team, Ticket

pytestmark = pytest.mark.django_db

MODELS = [Team, Crew, Ticket, Place, Escalation, Ship, Log, Member]

# None are the same to a database that ignores case and blanks.
PLACES = ["Kiel", "Bonn ", " Trier", "K\u00f6ln", "\U0001f600", "1", "%", "_", "'"]


def make(model: Any, number: int) -> Any:
    """Return a saved instance with a key of its own."""
    if model is Place:
        return Place.objects.create(code=PLACES[number])
    if model is Log:
        return Log.objects.create(ticket=Ticket.objects.create())
    if model is Member:
        return Member.objects.create(email=f"{number}@example.com")
    return model.objects.create()


def open_for(participant: Any, conversation_id: str | None = None) -> str:
    """Open a conversation as the store does, and return its id."""
    owner = Participant.of(participant)
    columns: dict[str, Any] = {}
    if owner is not None:
        app_label, _, model = owner.type.partition(".")
        content_type = ContentType.objects.get_by_natural_key(app_label, model)
        columns = {"participant_type": content_type, "participant_key": owner.key}
    now = timezone.now()
    made = Conversation.objects.create(
        id=conversation_id or uuid.uuid4().hex, opened_at=now, last_activity=now, **columns
    )
    return made.pk


def ids(queryset: Any) -> set[str]:
    return set(queryset.values_list("pk", flat=True))


def test_a_placeholder_is_not_among_the_opened() -> None:
    open_for(None, "open")
    Conversation.objects.create(id="reserved", last_activity=timezone.now())
    assert ids(Conversation.objects.all()) == {"open", "reserved"}
    assert ids(Conversation.objects.opened()) == {"open"}


@pytest.mark.parametrize("model", MODELS)
def test_the_conversations_of_an_instance_are_found(model: Any) -> None:
    one, two = make(model, 0), make(model, 1)
    mine = {open_for(one), open_for(one)}
    open_for(two)
    open_for(None)
    assert ids(Conversation.objects.for_participant(one)) == mine
    assert ids(Conversation.objects.for_participant(Participant.of(one))) == mine


def test_instances_of_two_models_with_one_key_have_conversations_of_their_own() -> None:
    user = User.objects.create_user("ann", pk=17)
    team = Team.objects.create(pk=17)
    place = Place.objects.create(code="17")
    found = [open_for(user), open_for(team), open_for(place)]
    for owner, conversation_id in zip((user, team, place), found, strict=True):
        assert ids(Conversation.objects.for_participant(owner)) == {conversation_id}


def test_conversations_of_nobody_are_found_by_none() -> None:
    nobodys = open_for(None)
    open_for(make(Team, 0))
    assert ids(Conversation.objects.for_participant(None)) == {nobodys}


@pytest.mark.parametrize("owner", [AnonymousUser(), Team(), "ann", 17, User])
def test_what_cannot_own_a_conversation_is_refused(owner: Any) -> None:
    with pytest.raises(InvalidParticipant):
        Conversation.objects.for_participant(owner)


def test_a_participant_of_a_model_that_is_unknown_has_no_conversations() -> None:
    open_for(make(Team, 0))
    assert ids(Conversation.objects.for_participant(Participant("no.such", "1"))) == set()


@pytest.mark.parametrize("model", MODELS)
def test_the_conversations_of_a_queryset_are_found_and_excluded(model: Any) -> None:
    one, two, three = (make(model, number) for number in range(3))
    first, second, third = open_for(one), open_for(two), open_for(three)
    nobodys = open_for(None)
    chosen = model.objects.filter(pk__in=[one.pk, two.pk])
    found = Conversation.objects.for_participants(chosen)
    assert ids(found) == {first, second}
    assert ids(Conversation.objects.exclude(pk__in=found)) == {third, nobodys}
    assert ids(Conversation.objects.for_participants(model.objects.exclude(pk=one.pk))) == {
        second,
        third,
    }
    assert ids(Conversation.objects.for_participants(model.objects.none())) == set()
    assert ids(Conversation.objects.for_participants(model.objects.order_by("-pk"))) == {
        first,
        second,
        third,
    }


@pytest.mark.parametrize("model", MODELS)
def test_objects_are_told_by_whether_they_have_conversations(model: Any) -> None:
    one, two = make(model, 0), make(model, 1)
    open_for(one)
    open_for(Participant("auth.user", Participant.of_row(two).key))
    theirs = Exists(Conversation.objects.for_outer(model))
    assert list(model.objects.filter(theirs)) == [one]
    assert list(model.objects.exclude(theirs)) == [two]
    assert list(model.objects.filter(~theirs)) == [two]


@pytest.mark.parametrize("model", MODELS)
def test_objects_are_told_by_what_their_conversations_are(model: Any) -> None:
    one, two = make(model, 0), make(model, 1)
    for owner, agent in ((one, "coach"), (two, "clerk"), (two, "clerk")):
        Conversation.objects.filter(pk=open_for(owner)).update(agent=agent)
    coached = Exists(Conversation.objects.filter(agent="coach").for_outer(model))
    assert list(model.objects.filter(coached)) == [one]
    agent = Conversation.objects.for_outer(model).values("agent").distinct()
    counted = Conversation.objects.for_outer(model).order_by().values("participant_key")
    found = model.objects.annotate(
        agent=Subquery(agent), conversations=Subquery(counted.values(number=Count("pk")))
    )
    assert {(each.pk, each.agent, each.conversations) for each in found} == {
        (one.pk, "coach", 1),
        (two.pk, "clerk", 2),
    }


def test_objects_are_told_by_the_conversations_of_what_they_refer_to() -> None:
    one, two = make(Log, 0), make(Log, 1)
    open_for(one.ticket)
    open_for(two)
    theirs = Exists(Conversation.objects.for_outer(Ticket, "ticket"))
    assert list(Log.objects.filter(theirs)) == [one]


def test_a_child_has_not_the_conversations_of_its_parent() -> None:
    child = make(Escalation, 0)
    parents, childs = open_for(child.ticket_ptr), open_for(child)
    assert ids(Conversation.objects.for_participants(Ticket.objects.all())) == {parents}
    assert ids(Conversation.objects.for_participants(Escalation.objects.all())) == {childs}


def test_a_proxy_has_the_conversations_of_its_model() -> None:
    crew = make(Crew, 0)
    theirs = open_for(crew)
    assert ids(Conversation.objects.for_participant(Team.objects.get())) == {theirs}
    assert ids(Conversation.objects.for_participants(Team.objects.all())) == {theirs}
    assert ids(Conversation.objects.for_participants(Crew.objects.all())) == {theirs}


@pytest.mark.parametrize("model", MODELS)
def test_the_key_of_a_row_is_the_key_of_its_participant(model: Any) -> None:
    for number in range(len(PLACES) if model is Place else 3):
        make(model, number)
    for obj, key in [(row, row.text) for row in model.objects.annotate(text=KeyOf("pk"))]:
        assert Participant.of_row(obj).key == key


def test_text_keys_are_told_apart_to_the_last_byte() -> None:
    places = [Place(code=code) for code in ("Kiel", "\U0001f600", "K\u00f6ln")]
    Place.objects.bulk_create(places)
    for place in places:
        open_for(place, place.code)
    team = ContentType.objects.get_for_model(Place)
    for awkward in ("kiel", "Kiel ", "\U0001f601", "Ko\u0308ln", "Koln"):
        open_for(Participant("testapp.place", awkward), f"foreign {awkward}")
    assert Conversation.objects.filter(participant_type=team).count() == 8
    found = ids(Conversation.objects.for_participants(Place.objects.all()))
    assert found == {place.code for place in places}


def ask_in(conversation_id: str, message_status: str = "paused", **fields: Any) -> ToolApproval:
    """Write a call that waits in a conversation, as the store does."""
    now = timezone.now()
    message, _ = ConversationMessage.objects.get_or_create(
        conversation_id=conversation_id,
        position=1,
        role="assistant",
        defaults={"created_at": now, "status": message_status},
    )
    index = message.approvals.count()
    return ToolApproval.objects.create(
        message=message, step=0, index=index, tool="pay", created_at=now, **fields
    )


def test_what_waits_in_any_conversation_is_told_with_the_newest_last() -> None:
    soon, past = timezone.now() + timedelta(hours=1), timezone.now() - timedelta(seconds=1)
    user = User.objects.create_user("ann", pk=17)
    anns, nobodys, ended = open_for(user), open_for(None), open_for(None)
    first = ask_in(anns, expires_at=soon)
    second = ask_in(nobodys)
    third = ask_in(anns)
    for status in ("approved", "denied", "expired", "claimed", "done", "interrupted"):
        ask_in(anns, status=status)
    ask_in(nobodys, expires_at=past)
    ask_in(ended, "failed")
    assert list(ToolApproval.objects.waiting()) == [first, second, third]


@pytest.mark.parametrize("model", MODELS)
def test_what_waits_for_a_participant_is_found(model: Any) -> None:
    one, two = make(model, 0), make(model, 1)
    mine, theirs, nobodys = (ask_in(open_for(owner)) for owner in (one, two, None))
    assert list(ToolApproval.objects.waiting().for_participant(one)) == [mine]
    assert list(ToolApproval.objects.for_participant(Participant.of(two)).waiting()) == [theirs]
    assert list(ToolApproval.objects.for_participant(None)) == [nobodys]
    with pytest.raises(InvalidParticipant):
        ToolApproval.objects.for_participant("ann")
