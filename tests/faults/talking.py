"""Workers that hold many turns, alone or against each other, until they are done or killed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_memory.exceptions import ConversationConflict, TurnFailed
from agent_memory.responses import Response
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking, note_in
from tests.faults.operations import ADA
from tests.fixtures import (
    ask_for_a_stream,
    ask_for_a_stream_in_a_task,
    ask_in_a_task,
    ask_plainly,
)

WAYS = (ask_plainly, ask_in_a_task, ask_for_a_stream, ask_for_a_stream_in_a_task)


class Talk:
    """
    Prompts of one worker, and what became of each.

    A prompt is told of when it is begun, each time that its model is asked, and
    when it is ``acknowledged``, ``failed`` or ``overtaken``.
    """

    def __init__(self, order: dict[str, Any], tell: Callable[..., None]) -> None:
        self.order, self.tell = order, tell
        self.random = random.Random(order["seed"])
        provider = ClerkProvider(asked=lambda number: tell(asked=number))
        self.clerk = Clerk(provider=provider, tools=[note_in(Ledger(Path(order["ledger"])))])

    def hold(self) -> None:
        """Ask again what another worker left unfinished, then so many prompts."""
        for begun in self.order.get("unfinished", ()):
            self.ask(**begun)
        for number in range(self.order["count"]):
            prompt = f"{self.order['name']}-{number}"
            conversation_id = self.random.choice(self.order["conversations"])
            text = asking(
                prompt, steps=self.random.choice((0, 0, 1, 1, 2)), calls=self.random.choice((1, 2))
            )
            begun = {"prompt": prompt, "text": text, "conversation_id": conversation_id}
            self.tell(begun=begun)
            self.ask(**begun)

    def ask(self, prompt: str, text: str, conversation_id: str | None) -> None:
        way = self.random.choice(WAYS)
        # Without an id, each prompt opens a conversation, which its key finds again.
        options: dict[str, Any] = {"idempotency_key": prompt, "wait": 60}
        if conversation_id is not None:
            options["conversation_id"] = conversation_id
        try:
            response = way(self.clerk.for_participant(ADA), text, **options)
        except TurnFailed:
            self.tell(failed=prompt)
        except ConversationConflict:
            self.tell(overtaken=prompt)
        else:
            self.tell(acknowledged=prompt, **facts(response))


def facts(response: Response) -> dict[str, Any]:
    """Return what an ``Acknowledged`` is made of."""
    return {
        "conversation_id": response.conversation_id,
        "prompt": response.turn.user.text,
        "text": response.text,
        "user_message_id": response.user_message_id,
        "assistant_message_id": response.assistant_message_id,
    }
