"""Conversations deleted in the admin: counted before, through the store, with their files."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from agent_memory import Message
from agent_memory.exceptions import ConversationConflict
from agent_memory.messages import Step, TextPart, Turn
from agent_memory.models import Conversation, ConversationAttachment
from agent_memory.signals import conversation_cleared
from agent_memory.testing.contract.attachments import PICTURE, turn_with
from tests.admin.acting import page_of, reserve, staff, told
from tests.admin.saying import CONVERSATIONS, seen, store, talk
from tests.storages import attachments_in
from tests.stores.test_database_approvals import paused_turn
from tests.stores.test_database_files import kept

pytestmark = pytest.mark.django_db


def test_deleting_tells_what_goes_and_clears_it_in_the_store(
    manager: Client, django_capture_on_commit_callbacks: Any
) -> None:
    talk("one", title="Chairs")
    store.append("one", turn_with(PICTURE))
    store.append("one", paused_turn("a", "b", "c"), reservation=store.reserve("one"))
    talk("two")
    page = seen(manager.get(page_of("delete", "one")))
    for words in ("Conversations: 1", "Messages: 6", "Attachments: 1", "Tool approvals: 3"):
        assert words in page
    cleared = []
    conversation_cleared.connect(
        lambda conversation_id, **kwargs: cleared.append(conversation_id),
        weak=False,
        dispatch_uid="test",
    )
    try:
        with django_capture_on_commit_callbacks(execute=True):
            answer = manager.post(page_of("delete", "one"), {"post": "yes"})
    finally:
        conversation_cleared.disconnect(dispatch_uid="test")
    assert answer["Location"] == CONVERSATIONS
    assert cleared == ["one"]
    assert list(Conversation.objects.values_list("pk", flat=True)) == ["two"]
    assert not ConversationAttachment.objects.exists()
    assert LogEntry.objects.get().is_deletion()


def delete_selected(client: Client, *ids: str, **data: Any) -> Any:
    chosen = {"action": "delete_selected", "_selected_action": list(ids), **data}
    return client.post(CONVERSATIONS, chosen)


def test_many_conversations_are_deleted_at_once_with_their_files(
    manager: Client, tmp_path: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    with attachments_in("FileSystemStorage", tmp_path, settings) as storage:
        for name in ("one", "two", "three"):
            store.append(name, turn_with(PICTURE))
        page = seen(delete_selected(manager, "one", "two"))
        for words in ("Conversations: 2", "Messages: 4", "Attachments: 2", "Tool approvals: 0"):
            assert words in page
        assert len(kept(storage)) == 3
        with django_capture_on_commit_callbacks(execute=True):
            answer = delete_selected(manager, "one", "two", post="yes")
        assert told(answer) == ["Successfully deleted 2 conversations."]
        assert list(Conversation.objects.values_list("pk", flat=True)) == ["three"]
        assert len(kept(storage)) == 1
    assert LogEntry.objects.count() == 2


def test_who_may_not_delete_is_offered_no_deletion_in_the_list(client: Client) -> None:
    talk("one")
    staff(client, "view_conversation", "rename_conversation")
    assert client.get(CONVERSATIONS).context["action_form"] is None
    delete_selected(client, "one", post="yes")
    assert Conversation.objects.exists()


def test_no_more_are_deleted_at_once_than_a_form_holds(
    manager: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.admin.deleting.MAX_DELETED", 1)
    talk("one")
    talk("two")
    answer = delete_selected(manager, "one", "two", post="yes")
    assert told(answer) == ["Select 1 conversations at most."]
    assert Conversation.objects.count() == 2


def test_deleting_costs_as_many_queries_at_any_length(
    manager: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        talk("one")
    with django_assert_max_num_queries(10):
        manager.get(page_of("delete", "one"))
    with django_assert_max_num_queries(20):
        manager.post(page_of("delete", "one"), {"post": "yes"})


def test_deleting_wins_over_a_turn_that_runs_and_says_so(manager: Client) -> None:
    talk("one")
    talk("two")
    assert "Deleting wins" not in seen(manager.get(page_of("delete", "one")))
    reservation = reserve("one")
    assert "Deleting wins" in seen(manager.get(page_of("delete", "one")))
    assert "Deleting wins" in seen(delete_selected(manager, "one", "two"))
    assert "Deleting wins" not in seen(delete_selected(manager, "two"))
    manager.post(page_of("delete", "one"), {"post": "yes"})
    step = Step(items=(TextPart(text="Late."),))
    with pytest.raises(ConversationConflict):
        store.append("one", Turn(user=Message("user", "a"), steps=(step,)), reservation=reservation)
