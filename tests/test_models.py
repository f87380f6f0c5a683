"""The rows: what they are called, what may stand in them once only, and what goes with what."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, models, transaction
from django.db.models import F, ProtectedError
from django.utils import timezone

from agent_memory.fields import ExactCharField, ExactTextField
from agent_memory.models import (
    Conversation,
    ConversationAttachment,
    ConversationMessage,
    ToolApproval,
    TurnJournal,
)

pytestmark = pytest.mark.django_db

MODELS = list(apps.get_app_config("agent_memory").get_models())


def conversation(conversation_id: str = "one", **fields: Any) -> Conversation:
    now = timezone.now()
    return Conversation.objects.create(
        id=conversation_id, opened_at=now, last_activity=now, **fields
    )


def message(of: Conversation, position: int = 0, **fields: Any) -> ConversationMessage:
    fields = {"role": "user", "created_at": timezone.now(), **fields}
    return ConversationMessage.objects.create(conversation=of, position=position, **fields)


def attachment(of: Conversation, sha256: str = "0" * 64, public_id: str = "a") -> Any:
    return ConversationAttachment.objects.create(
        conversation=of, sha256=sha256, public_id=public_id, size=1, created_at=timezone.now()
    )


def approval(of: ConversationMessage, index: int = 0) -> ToolApproval:
    return ToolApproval.objects.create(
        message=of, step=0, index=index, tool="pay", created_at=timezone.now()
    )


def entry(of: Conversation, index: int = -1) -> TurnJournal:
    return TurnJournal.objects.create(
        conversation=of, turn_id="t", step=0, index=index, entry="{}", created_at=timezone.now()
    )


def test_rows_are_called_by_what_a_person_knows_them_by() -> None:
    titled, untitled = conversation("one", title="Chairs"), conversation("two")
    said = message(titled, content=f"Where are {'my ' * 40}chairs?")
    assert (str(titled), str(untitled)) == ("Chairs", "two")
    assert str(said) == f"user: {said.content[:50]}"
    assert str(attachment(titled)) == "a"
    assert str(approval(said)) == "pay: pending"
    assert str(entry(titled)) == "t 0.-1"


def test_a_new_conversation_is_free_unpaused_and_empty() -> None:
    row = conversation()
    row.refresh_from_db()
    assert (row.reservation, row.reserved_since, row.reserved_until) == ("", 0, 0)
    assert (row.paused_position, row.undecided_count, row.journalled) == (None, 0, False)
    assert (row.next_position, row.turn_count, row.participant) == (0, 0, None)


def test_no_two_messages_stand_at_one_position() -> None:
    one, two = conversation("one"), conversation("two")
    message(one, 0)
    message(one, -1)
    message(two, 0)
    with pytest.raises(IntegrityError), transaction.atomic():
        message(one, 0)


def test_an_idempotency_key_stands_once_in_a_conversation() -> None:
    one, two = conversation("one"), conversation("two")
    message(one, 0, idempotency_key="k")
    message(one, 1, idempotency_key=None)
    message(one, 2, idempotency_key=None)
    message(one, 3, idempotency_key="K")
    message(two, 0, idempotency_key="k")
    with pytest.raises(IntegrityError), transaction.atomic():
        message(one, 4, idempotency_key="k")


def test_the_bytes_of_an_attachment_stand_once_in_a_conversation() -> None:
    one, two = conversation("one"), conversation("two")
    attachment(one, "0" * 64, "a")
    attachment(two, "0" * 64, "b")
    for sha256, public_id in (("0" * 64, "c"), ("1" * 64, "a")):
        with pytest.raises(IntegrityError), transaction.atomic():
            attachment(one, sha256, public_id)


def test_a_call_is_asked_about_once_and_journalled_once() -> None:
    one = conversation()
    said = message(one)
    for make, of in ((approval, said), (entry, one)):
        make(of, 0)
        make(of, 1)
        with pytest.raises(IntegrityError), transaction.atomic():
            make(of, 1)


def test_a_conversation_goes_with_all_it_holds_and_nothing_else() -> None:
    for name in ("one", "two"):
        row = conversation(name)
        approval(message(row))
        attachment(row, public_id=name)
        entry(row)
    Conversation.objects.get(pk="one").delete()
    assert [model.objects.count() for model in MODELS] == [1] * len(MODELS)
    assert Conversation.objects.get().pk == "two"


def test_a_kind_of_participant_cannot_go_while_it_has_conversations() -> None:
    user = User.objects.create_user("ann")
    conversation(participant=user)
    with pytest.raises(ProtectedError):
        ContentType.objects.get_for_model(User).delete()


def test_counters_may_be_reckoned_below_zero_in_the_database() -> None:
    conversation()
    rows = Conversation.objects.annotate(first=F("next_position") - 100)
    assert rows.get().first == -100
    assert rows.filter(next_position__gte=F("turn_count") - 1).exists()


def test_totals_hold_more_tokens_than_one_message_can() -> None:
    conversation(input_tokens=2**62)
    assert Conversation.objects.get().input_tokens == 2**62


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_text_column_compares_byte_for_byte(model: type[models.Model]) -> None:
    for field in model._meta.concrete_fields:
        if isinstance(field, (models.CharField, models.TextField)):
            assert isinstance(field, (ExactCharField, ExactTextField)), field


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_column_has_an_index_that_no_query_uses(model: type[models.Model]) -> None:
    assert not [field.name for field in model._meta.concrete_fields if field.db_index]
