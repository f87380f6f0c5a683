"""The admin acts on the rows that it shows, wherever the project keeps conversations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from agent_memory.models import (
    Conversation,
    ConversationMessage,
)
from agent_memory.testing import (
    override_store,
)
from tests.admin.acting import page_of, title_of
from tests.admin.calls import PAY, decide, pause, status_of
from tests.admin.saying import talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Keep the project's conversations in another store than that of the rows."""
    with override_store():
        yield


@pytest.mark.usefixtures("elsewhere")
def test_rows_are_acted_on_also_where_the_project_keeps_conversations_elsewhere(
    manager: Client,
) -> None:
    talk("one", title="Chairs")
    manager.post(page_of("rename", "one"), {"title": "Tables"})
    assert title_of("one") == ("Tables", "person")
    manager.post(page_of("delete", "one"), {"post": "yes"})
    assert not Conversation.objects.exists()


def test_rows_are_decided_also_where_the_project_keeps_conversations_elsewhere(
    decider: Client,
) -> None:
    (call,) = pause("one", PAY)
    with override_store():
        decide(decider, (call, {"decision": "approve"}))
    assert status_of(call) == ["approved"]
    assert Conversation.objects.get().undecided_count == 0
    assert ConversationMessage.objects.filter(status="paused").exists()
