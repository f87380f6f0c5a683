"""Columns that compare byte for byte, and participants that are read through rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.contenttypes.prefetch import GenericPrefetch
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from agent_memory.models import Conversation, ConversationMessage
from agent_memory.participants import Participant
from tests.testapp.models import Escalation, Place, Team, Ticket

pytestmark = pytest.mark.django_db

TEXTS = [
    *("a", "A", "a ", " a", "a  ", "a\t", "\ta", "a\n", "\u00e9", "e\u0301", "E\u0301", "e"),
    *("stra\u00dfe", "strasse", "STRASSE", "k", "K", "\u212a", "i", "I", "\u0130", "\u0131"),
    *("a\u200b", "\u200b", "\u00a0", "\U0001f600", "\U0001f601", "\uffff", "\ufdd0", "%", "_"),
    *("\\", "'", '"', "\U0001f600" * 255, "0", "00", "-0", "1e1", "10"),
]


def make(conversation_id: str, **fields: Any) -> Conversation:
    fields.setdefault("opened_at", timezone.now())
    return Conversation.objects.create(id=conversation_id, last_activity=timezone.now(), **fields)


def of(participant: Any) -> dict[str, Any]:
    """Return the columns of a participant."""
    owner = Participant.of(participant)
    assert owner is not None
    content_type = ContentType.objects.get_by_natural_key(*owner.type.split("."))
    return {"participant_type": content_type, "participant_key": owner.key}


# Text.


def test_texts_that_look_alike_are_different_keys() -> None:
    for text in TEXTS:
        make(text)
    for text in TEXTS:
        assert Conversation.objects.get(pk=text).pk == text
    assert set(Conversation.objects.values_list("pk", flat=True)) == set(TEXTS)


@pytest.mark.parametrize("text", ["a", " a", "\u00e9", "\U0001f600", "\u200b", "K"])
def test_the_same_text_is_the_same_key(text: str) -> None:
    make(text)
    with pytest.raises(IntegrityError), transaction.atomic():
        make(text)


def test_columns_of_every_length_come_back_and_are_found_byte_for_byte() -> None:
    conversation = make("one")
    for position, text in enumerate(TEXTS):
        ConversationMessage.objects.create(
            conversation=conversation,
            position=position,
            role="user",
            agent=text,
            content=text * 40,
            created_at=timezone.now(),
        )
    for position, text in enumerate(TEXTS):
        for found in ({"agent": text}, {"content": text * 40}):
            row = ConversationMessage.objects.get(**found)
            assert (row.position, row.agent, row.content) == (position, text, text * 40)


def test_texts_sort_alike_however_often_they_are_asked_for() -> None:
    for text in TEXTS:
        make(text)
    once = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    backwards = list(Conversation.objects.order_by("-pk").values_list("pk", flat=True))
    assert once == backwards[::-1]


@pytest.mark.parametrize(
    ("lookup", "value", "found"),
    [
        ("icontains", "CHAIR", True),
        ("iexact", "blue chairs", True),
        ("istartswith", "bLUE", True),
        ("iendswith", "CHAIRS", True),
        ("contains", "Chair", True),
        ("startswith", "Blue", True),
        ("contains", "chair", connection.vendor == "sqlite"),
        ("exact", "blue chairs", False),
        ("icontains", "table", False),
        ("icontains", "%", False),
    ],
)
def test_case_matters_unless_a_lookup_says_otherwise(lookup: str, value: str, found: bool) -> None:
    conversation = make("one", title="Blue Chairs")
    ConversationMessage.objects.create(
        conversation=conversation,
        position=0,
        role="user",
        content="Blue Chairs",
        created_at=timezone.now(),
    )
    assert Conversation.objects.filter(**{f"title__{lookup}": value}).exists() is found
    assert ConversationMessage.objects.filter(**{f"content__{lookup}": value}).exists() is found


# Participants.


@pytest.fixture
def owners() -> list[Any]:
    """Return participants with keys of all kinds, some of which are the same text."""
    return [
        User.objects.create_user("ann", pk=17),
        Team.objects.create(pk=17, name="Red"),
        Ticket.objects.create(),
        Place.objects.create(code="17"),
        Place.objects.create(code="K\u00f6ln / Deutz"),
        Escalation.objects.create(),
    ]


@pytest.fixture
def customers() -> Iterator[ContentType]:
    """Make the content type of a model that is not installed."""
    yield ContentType.objects.create(app_label="shop", model="customer")
    ContentType.objects.clear_cache()


GONE = [
    ("auth.user", "999999"),
    ("auth.user", "no number"),
    ("auth.user", "017"),
    ("auth.user", "9" * 255),
    ("testapp.ticket", str(uuid.UUID(int=7))),
    ("testapp.ticket", "no uuid"),
    ("testapp.escalation", "no uuid"),
    ("testapp.place", "unknown"),
    ("testapp.place", "K\u00d6LN / DEUTZ"),
    ("testapp.place", "17 "),
    ("shop.customer", "C-17"),
]


def test_a_row_gives_the_instance_that_owns_it(owners: list[Any]) -> None:
    for number, owner in enumerate(owners):
        make(str(number), **of(owner))
    for number, owner in enumerate(owners):
        assert Conversation.objects.get(pk=str(number)).participant == owner


def test_a_row_of_nobody_gives_none() -> None:
    make("one")
    assert Conversation.objects.get().participant is None
    assert Conversation.objects.prefetch_related("participant").get().participant is None


def test_an_instance_is_filed_by_setting_it(owners: list[Any]) -> None:
    for number, owner in enumerate(owners):
        make(str(number), participant=owner)
    for number, owner in enumerate(owners):
        row = Conversation.objects.get(pk=str(number))
        assert (row.participant, row.participant_key) == (owner, str(owner.pk))
        assert Conversation.objects.for_participant(owner).get() == row


def test_a_participant_is_read_once(owners: list[Any], django_assert_num_queries: Any) -> None:
    make("one", **of(owners[0]))
    row = Conversation.objects.get()
    with django_assert_num_queries(1):
        assert row.participant == row.participant == owners[0]


def test_participants_of_many_rows_are_read_in_one_query_a_model(
    owners: list[Any], django_assert_num_queries: Any
) -> None:
    for number, owner in enumerate(owners * 3):
        make(f"{number:02}", **of(owner))
    rows = Conversation.objects.order_by("pk").prefetch_related("participant")
    with django_assert_num_queries(1 + len({type(owner) for owner in owners})):
        assert [row.participant for row in rows] == owners * 3


def test_messages_know_who_spoke(owners: list[Any]) -> None:
    conversation = make("one")
    for position, owner in enumerate(owners):
        ConversationMessage.objects.create(
            conversation=conversation,
            position=position,
            role="user",
            created_at=timezone.now(),
            **of(owner),
        )
    rows = ConversationMessage.objects.order_by("position")
    assert [row.participant for row in rows] == owners
    assert [row.participant for row in rows.prefetch_related("participant")] == owners


@pytest.mark.usefixtures("customers", "owners")
@pytest.mark.parametrize(("model", "key"), GONE)
def test_a_participant_that_is_gone_or_never_was_is_none(model: str, key: str) -> None:
    make("one", **of(Participant(model, key)))
    assert Conversation.objects.get().participant is None
    assert Conversation.objects.prefetch_related("participant").get().participant is None


@pytest.mark.usefixtures("customers")
def test_participants_that_are_gone_do_not_hide_others(owners: list[Any]) -> None:
    for number, (model, key) in enumerate(GONE):
        make(f"gone-{number}", **of(Participant(model, key)))
    for number, owner in enumerate(owners):
        make(f"here-{number}", **of(owner))
    rows = Conversation.objects.order_by("pk").prefetch_related("participant")
    assert [row.participant for row in rows] == [*[None] * len(GONE), *owners]


def test_a_participant_that_is_deleted_leaves_its_conversation(owners: list[Any]) -> None:
    make("one", **of(owners[0]))
    owners[0].delete()
    assert Conversation.objects.get().participant is None


def test_a_prefetch_may_bring_its_own_queryset(owners: list[Any]) -> None:
    user = owners[0]
    user.groups.add(Group.objects.create(name="Helpdesk"))
    make("one", **of(user))
    make("two", **of(owners[1]))
    users = User.objects.defer("password").prefetch_related("groups")
    rows = Conversation.objects.order_by("pk").prefetch_related(
        GenericPrefetch("participant", [users])
    )
    one, two = (row.participant for row in rows)
    assert (one, two) == (user, owners[1])
    assert one.get_deferred_fields() == {"password"}
    assert [group.name for group in one._prefetched_objects_cache["groups"]] == ["Helpdesk"]
