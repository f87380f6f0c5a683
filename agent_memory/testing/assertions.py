"""What a conversation holds, asserted through the store's contract: any store will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from agent_memory import conf
from agent_memory.approvals import EXPIRED, Approval
from agent_memory.exceptions import ApprovalNotResumable
from agent_memory.history import window
from agent_memory.messages import Message, ToolCall
from agent_memory.records import StoredMessage
from agent_memory.responses import Response
from agent_memory.stores import ConversationStore, get_store
from agent_memory.testing.descriptions import brief, message_lines

Told: TypeAlias = str | Response
"""A conversation: its id, or a response of it."""

Decided = Literal["pending", "approved", "edited", "denied", "expired"]


class ConversationAssertions:
    """
    Assertions about stored conversations; mix it into a ``TestCase``, or make one for pytest.

    They ask the store that agents without a store of their own use, unless
    ``conversation_store`` names another one. They are sync: an async test calls
    them by ``sync_to_async()`` where the store uses a database.
    """

    conversation_store: ConversationStore | str | None = None

    def assert_prompted_with(self, conversation: Told, text: str) -> None:
        """Assert that a user message of the conversation has this text."""
        messages = self._messages(conversation)
        if all((each.role, each.content) != ("user", text) for each in messages):
            _fail(f"No user message is {text!r:.200}.", messages)

    def assert_remembered(
        self, conversation: Told, text: str, *, keep_last_turns: int | None = None
    ) -> None:
        """
        Assert that a prompt was sent this text as history, or would be.

        With a response it is its own prompt, with an id the next one. The window is
        ``keep_last_turns`` turns long, or as the setting says.
        """
        history = self._history(conversation, keep_last_turns)
        if not any(text in message.text for message in history):
            lines = "\n".join(message_lines(history)) or "  nothing"
            raise AssertionError(f"{text!r:.200} was not remembered. The history:\n{lines}")

    def assert_message_count(self, conversation: Told, count: int) -> None:
        """Assert how many messages are stored: two a turn, and the leading ones."""
        messages = self._messages(conversation)
        if len(messages) != count:
            _fail(f"There are {len(messages)} messages, not {count}.", messages)

    def assert_roles(self, conversation: Told, roles: Iterable[str]) -> None:
        """Assert the roles of the stored messages, oldest first."""
        messages, wanted = self._messages(conversation), list(roles)
        if [message.role for message in messages] != wanted:
            _fail(f"The roles are not {', '.join(wanted) or 'none'}.", messages)

    def assert_pending_approvals(self, conversation: Told, tools: Iterable[str]) -> None:
        """Assert of which tools a call waits for a person, in the order of the calls."""
        pending = self._store().pending_approvals_for(_id_of(conversation))
        wanted = list(tools)
        if [each.name for each in pending] != wanted:
            there = "\n".join(f"  {each.id}: {each.name}({each.arguments})" for each in pending)
            raise AssertionError(
                f"What waits is not {', '.join(wanted) or 'nothing'}, but:\n{there or '  nothing'}"
            )

    def assert_decided(self, conversation: Told, call_id: str, decision: Decided) -> None:
        """
        Assert what became of the gated call of this id, the latest one that has it.

        It is ``pending``, ``approved``, ``denied`` or ``expired``; ``edited`` is
        approved with other arguments. While the turn is paused, its conversation is
        reserved for a moment to look.
        """
        if decision not in get_args(Decided):
            raise ValueError(
                f"A decision is one of {', '.join(get_args(Decided))}, not {decision!r:.80}."
            )
        found = next(self._decisions(_id_of(conversation), call_id), None)
        if found is None:
            _fail(f"No call {call_id!r:.80} was gated.", self._messages(conversation))
        if decision not in (found, "approved" if found == "edited" else found):
            raise AssertionError(f"The call {call_id!r:.80} is {found}, not {decision}.")

    def assert_nothing_stored(self, *participants: Any) -> None:
        """Assert that no conversation belongs to these; ``None``: to nobody."""
        if not participants:
            raise TypeError(
                "assert_nothing_stored() needs whose conversations to look for: a participant, "
                "or None for those of nobody."
            )
        store = self._store()
        for participant in participants:
            found = store.list_conversations(participant)
            if len(found):
                ids = ", ".join(each.id for each in found)
                whose = "Nobody" if participant is None else repr(participant)
                raise AssertionError(f"{whose:.80} has stored conversations: {ids}.")

    def _store(self) -> ConversationStore:
        return get_store(self.conversation_store)

    def _messages(self, conversation: Told) -> list[StoredMessage]:
        """Return all stored messages, oldest first."""
        store, conversation_id = self._store(), _id_of(conversation)
        page = store.paginate_conversation_messages(conversation_id)
        found = [*page]
        while page.next_cursor is not None:
            page = store.paginate_conversation_messages(conversation_id, cursor=page.next_cursor)
            found += page
        return found[::-1]

    def _history(self, conversation: Told, keep_last_turns: int | None) -> Sequence[Message]:
        keep = conf.setting("KEEP_LAST_TURNS") if keep_last_turns is None else keep_last_turns
        store, conversation_id = self._store(), _id_of(conversation)
        if isinstance(conversation, str):
            return store.load(conversation_id, keep_last_turns=keep)
        loaded = store.load(conversation_id)
        prompts = [index for index, each in enumerate(loaded) if each.role == "user"]
        turns = self._turns_from(conversation)
        return window(loaded[: prompts[-turns]] if turns else loaded, keep)

    def _turns_from(self, response: Response) -> int:
        """Return how many turns a store loads from that of a response on; a paused one is none."""
        messages = self._messages(response)
        ids = [message.id for message in messages]
        if response.user_message_id not in ids:
            _fail("The turn of this response is not stored.", messages)
        return sum(
            message.role == "assistant" and message.status != "paused"
            for message in messages[ids.index(response.user_message_id) :]
        )

    def _decisions(self, conversation_id: str, call_id: str) -> Iterator[Decided]:
        """Yield what was decided on calls of this id, the latest first."""
        for approval in self._approvals(conversation_id):
            if approval.asked.id == call_id:
                yield _of_approval(approval)
        for message in reversed(self._messages(conversation_id)):
            for call in reversed(message.tool_calls()):
                if call.id == call_id and call.approval_reason is not None:
                    yield _of_call(call)

    def _approvals(self, conversation_id: str) -> Iterable[Approval]:
        """Return the approvals of a paused turn, for which the contract has no look but this."""
        store = self._store()
        try:
            reservation = store.reserve(conversation_id, resume=True)
        except ApprovalNotResumable:
            return ()
        store.release(reservation)
        return () if reservation.paused is None else reservation.paused.approvals


def _id_of(conversation: Told) -> str:
    if isinstance(conversation, str):
        return conversation
    if conversation.conversation_id is None:
        raise AssertionError(
            "This response was not stored: bind the agent to a conversation, with for_user() "
            "or another method of RemembersConversations."
        )
    return conversation.conversation_id


def _of_approval(approval: Approval) -> Decided:
    match approval.status:
        case "pending" | "denied" | "expired":
            return approval.status
    return "approved" if approval.edited is None else "edited"


def _of_call(call: ToolCall) -> Decided:
    if call.result is None:
        return "pending"
    if call.result.denied:
        return "expired" if call.result.value == EXPIRED else "denied"
    return "approved" if call.edited is None else "edited"


def _fail(what: str, messages: Iterable[StoredMessage]) -> NoReturn:
    lines = [
        f"  {message.role}: {brief(message.content)}"
        + "".join(f" [called {call.name}]" for call in message.tool_calls())
        + ("" if message.status == "completed" else f" ({message.status})")
        for message in messages
    ]
    raise AssertionError("\n".join([what, "The conversation:", *(lines or ["  nothing"])]))


_everywhere = ConversationAssertions()

assert_prompted_with = _everywhere.assert_prompted_with
assert_remembered = _everywhere.assert_remembered
assert_message_count = _everywhere.assert_message_count
assert_roles = _everywhere.assert_roles
assert_pending_approvals = _everywhere.assert_pending_approvals
assert_decided = _everywhere.assert_decided
assert_nothing_stored = _everywhere.assert_nothing_stored
