"""This app's own store, and an agent's whole prompt around it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.contestants.bare_orm import BATCH, DjangoContestant
from benchmarks.contestants.base import DEFAULT_USER
from benchmarks.turns import MESSAGES, Turn, image, turns

LABEL = "benchmarks.Coach"


class OurStore(DjangoContestant):
    """``DatabaseConversationStore``, by the calls that a prompt makes."""

    name = "agent_memory"
    kind = "ours"
    databases = ("sqlite", "postgresql", "mariadb")
    pages = finds_latest = True
    mark = ""
    """What its conversations' names end with, which share their tables with those of others."""

    def open(self) -> None:
        super().open()
        from agent_memory import Participant
        from agent_memory.records import Heading
        from agent_memory.stores import get_store

        self.store = get_store()
        self.speaker = Participant("auth.user", str(DEFAULT_USER))
        self.heading = lambda name: Heading(name, self.speaker, LABEL)

    def shape(self, turn: Turn) -> Any:
        from agent_memory import Message, messages

        said: Any = turn.user
        if turn.pictured:
            picture = messages.ImagePart(media_type="image/png", data=image())
            said = (messages.TextPart(text=turn.user), picture)
        result = messages.ToolResult(value=turn.result)
        call = messages.ToolCall(
            id=turn.call_id, name="search", arguments=turn.arguments, result=result
        )
        usage = messages.Usage(input_tokens=812, output_tokens=164)
        asking = messages.Step(
            items=(call,), finish_reason="tool_calls", provider="openai", model="bench"
        )
        answering = messages.Step(
            items=(messages.TextPart(text=turn.answer),),
            usage=usage,
            provider="openai",
            model="bench",
        )
        return messages.Turn(user=Message("user", said), steps=(asking, answering))

    def append(self, conversation: str, messages: Any) -> None:
        self.store.append(self.heading(conversation), messages)

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.store.load(conversation, keep_last_turns=count)

    def turn(self, conversation: str, messages: Any) -> None:
        reservation = self.store.reserve(
            conversation, participant=self.speaker, must_own=True, message=messages.user
        )
        self.store.load(conversation, keep_last_turns=10, reservation=reservation)
        self.store.append(self.heading(conversation), messages, reservation=reservation)

    def history(self, conversation: str) -> list[Any]:
        return [*self.store.load(conversation)]

    def entries(self, size: int) -> int:
        """Return how many of our entries hold so many messages: an answer's are one."""
        return -(-size * 2 // MESSAGES)

    def cursor(self, conversation: str, number: int, size: int = 25) -> Any:
        cursor = None
        for _ in range(number - 1):
            cursor = self.page(conversation, cursor, size).next_cursor
        return cursor

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        return self.store.paginate_conversation_messages(
            conversation + self.mark, per_page=self.entries(size), cursor=cursor
        )

    def latest(self, participant: int) -> Any:
        from agent_memory import Participant

        return self.store.latest_conversation_id(Participant("auth.user", str(participant)), LABEL)

    # Seeding: the rows that the store would write, in bulk.

    def seed(self, conversation: str, count: int) -> None:
        self._seed({conversation + self.mark: DEFAULT_USER}, count)

    def seed_conversations(self, owners: list[int]) -> None:
        self._seed({f"owned-{number}": owner for number, owner in enumerate(owners)}, 1)

    def _seed(self, owners: dict[str, int], count: int) -> None:
        from django.db import transaction

        from agent_memory.models import Conversation, ConversationMessage

        with transaction.atomic():
            headed = [seeded(name, owner, count) for name, owner in owners.items()]
            Conversation.objects.bulk_create(
                (Conversation(**conversation) for conversation, _ in headed), batch_size=BATCH
            )
            ConversationMessage.objects.bulk_create(
                (
                    ConversationMessage(**row)
                    for conversation, heading in headed
                    for turn in turns(conversation["id"], count)
                    for row in seeded_turn(heading, self.shape(turn), turn)
                ),
                batch_size=BATCH,
            )


def seeded(name: str, owner: int, count: int) -> tuple[dict[str, Any], Any]:
    """Return the row and the heading of a conversation of so many turns."""
    from agent_memory import Participant
    from agent_memory.records import Heading
    from agent_memory.stores.database import rows

    heading = Heading(name, Participant("auth.user", str(owner)), LABEL)
    row = rows.conversation_row(heading, "default", moment=datetime.now(UTC), opened=True)
    return row | {"next_position": 2 * count, "turn_count": count}, heading


def seeded_turn(heading: Any, turn: Any, made_of: Turn) -> list[dict[str, Any]]:
    """Return the two rows of a turn, at the place that its tag tells."""
    from agent_memory.records import Reservation
    from agent_memory.stores.database import rows, terms

    number = int(made_of.tag.rsplit("-", 1)[1]) if made_of.tag.startswith(heading.id) else 0
    moment = datetime.now(UTC) - timedelta(days=1)
    reservation = Reservation(heading.id, made_of.tag[-36:])
    pair = rows.turn_rows(heading, turn, reservation, "default", begun=moment, ended=moment)
    whole = zip((terms.ASKED, terms.ANSWERED), pair, strict=True)
    return [
        {**same, **row, "position": 2 * number + place} for place, (same, row) in enumerate(whole)
    ]


class OurPageOfEntries(OurStore):
    """A page of as many entries as others have messages, which holds twice as many turns."""

    name = "agent_memory, 25 entries"
    only = frozenset({"page"})
    mark = "-entries"

    def entries(self, size: int) -> int:
        return size


class OurJournalledTurn(OurStore):
    """The same with the journal that a turn with a tool writes: its call, then its result."""

    name = "agent_memory, with journal"
    only = frozenset({"turn"})
    mark = "-journalled"

    def turn(self, conversation: str, messages: Any) -> None:
        from agent_memory.journals import JournalEntry

        conversation += self.mark
        store, heading = self.store, self.heading(conversation)
        asked = messages.steps[0]
        (call,) = asked.tool_calls()
        reservation = store.reserve(
            conversation, participant=self.speaker, must_own=True, message=messages.user
        )
        store.load(conversation, keep_last_turns=10, reservation=reservation)
        store.journal(reservation, JournalEntry(0, -1, asked, heading, messages.user), 60)
        store.journal(reservation, JournalEntry(0, 0, call.result), 60)
        store.append(heading, messages, reservation=reservation)


class OurPrompt(OurStore):
    """
    ``agent.prompt()`` with its tool and a scripted provider: the flow, its threads, the journal.

    Compare it with nobody: no peer's agent runs here.
    """

    name = "agent_memory, prompt() and all"
    only = frozenset({"turn"})
    mark = "-prompted"

    def open(self) -> None:
        super().open()
        from agent_memory import Agent, RemembersConversations, tool
        from agent_memory.testing import ScriptedProvider, calls

        self.provider = ScriptedProvider()
        self.calls = calls
        result = Turn("prompt").result

        @tool
        def search(query: str, limit: int) -> str:
            """Search."""
            return result if query and limit else ""

        class Coach(RemembersConversations, Agent):
            label = LABEL
            keep_last_turns = 10

        self.coach = Coach(provider=self.provider, tools=[search])

    def turn(self, conversation: str, messages: Any) -> None:
        (call,) = messages.tool_calls()
        self.provider.requests.clear()
        self.provider.extend([self.calls(("search", call.arguments)), messages.text])
        bound = self.coach.continue_conversation(
            conversation + self.mark, self.speaker, must_own=True
        )
        bound.prompt(messages.user)
