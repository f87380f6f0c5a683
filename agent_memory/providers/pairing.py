"""Calls and their results as every API wants them: each call answered once, each id its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator

from agent_memory.messages import Message, ToolCall

logger = logging.getLogger("agent_memory")


class Pairing:
    """
    Mends the calls and results of one request, whose histories may be anybody's.

    APIs refuse a call without a result, a result without a call, and some an id
    that comes twice: one such message would end its conversation for good.
    ``taken`` are the ids that are no longer free.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._given: Counter[str] = Counter()

    def mended(self, messages: Iterable[Message]) -> Iterator[Message]:
        """
        Yield messages, each assistant's followed by the results of its calls.

        A missing result is told as interrupted; one that answers no call is left
        out, with a warning. A missing or repeated id is replaced, in the call and
        in its result.
        """
        for message, results in _answered(messages):
            calls = tuple(map(self._with_own_id, message.tool_calls[: len(results)]))
            if calls != message.tool_calls:
                message = message.model_copy(update={"tool_calls": calls})
            yield message
            for call, result in zip(calls, results, strict=True):
                if result is None:
                    result = Message("tool", _told(call), tool_call_id=call.id)
                elif result.tool_call_id != call.id:
                    result = result.model_copy(update={"tool_call_id": call.id})
                yield result

    def _with_own_id(self, call: ToolCall) -> ToolCall:
        call_id = call.id
        while not call_id or call_id in self._taken:
            self._given[call.id] += 1
            call_id = f"{call.id or 'call'}_{self._given[call.id]}"
        self._taken.add(call_id)
        return call if call_id == call.id else call.model_copy(update={"id": call_id})


_Told = tuple[Message, list[Message | None]]


def _answered(messages: Iterable[Message]) -> list[_Told]:
    """Return all but the tool messages, each with the results of its calls."""
    told: list[_Told] = []
    strays = 0
    for message in messages:
        if message.role != "tool":
            calls = message.tool_calls if message.role == "assistant" else ()
            told.append((message, [None] * len(calls)))
        elif not _answer(told, message):
            strays += 1
    if strays:
        logger.warning("%d tool results of the history answer no call and were not sent.", strays)
    return told


def _answer(told: list[_Told], result: Message) -> bool:
    """Give a result to the nearest call before it that has its id, if it has one, and no result."""
    for message, results in reversed(told):
        for index, found in enumerate(results):
            if found is None and result.tool_call_id in (None, "", message.tool_calls[index].id):
                results[index] = result
                return True
    return False


def _told(call: ToolCall) -> str:
    return call.unanswered.text if call.result is None else call.told
