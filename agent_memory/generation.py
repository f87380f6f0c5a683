"""Generating an answer: ask the provider, run tools, ask again, or stop for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from agent_memory.approvals import PendingApproval, of_call
from agent_memory.calls import Call
from agent_memory.exceptions import (
    ApprovalNotResumable,
    ProviderUnavailable,
)
from agent_memory.flow import Do, Emit, Flow, Start, Take, Wait
from agent_memory.messages import Status, Step, ToolCall, ToolResult, Turn, TurnError
from agent_memory.providers import ProviderReply, ProviderRequest
from agent_memory.recalled import Noted, Recalled
from agent_memory.responses import Event, StepFinished, ToolFinished, ToolStarted, Waiting
from agent_memory.tools import Tool, ToolContext, missing_tool

HEARTBEAT_SECONDS = 15.0
"""How long a stream tells nothing at most, while it waits for the provider."""

GLANCE_SECONDS = 0.05
"""How long to look at one of several tools that run beside each other."""


@dataclass(frozen=True, slots=True)
class Run:
    """A call that may run; ``approved``: a person allowed it, so it is claimed first."""

    index: int
    call: ToolCall
    tool: Tool | None
    approved: bool = False

    @property
    def beside(self) -> bool:
        return self.tool is not None and self.tool.concurrent


@dataclass(slots=True)
class Generation:
    """
    The answer to one prompt while it is made; ``steps`` are the finished ones.

    ``waiting`` is what it waits for when it has stopped for a person.
    """

    agent: Any
    recalled: Recalled
    call: Call
    max_steps: int
    steps: list[Step] = field(default_factory=list)
    waiting: tuple[PendingApproval, ...] = ()

    def __post_init__(self) -> None:
        self.steps.extend(self.recalled.steps)

    def run(self) -> Flow[Status]:
        """Add steps until the model has answered, or a call waits for a person."""
        while not self.steps or (yield from self._answer_calls()):
            step = yield from self._ask()
            self.steps.append(step)
            yield Emit(StepFinished(step))
        return "paused" if self.waiting else "completed"

    def _ask(self) -> Flow[Step]:
        provider, patience = self.call.provider, self.recalled.patience
        request = ProviderRequest(
            model=self.recalled.model or self.call.model,
            messages=(*self.recalled.messages, self.recalled.user),
            instructions=self.call.instructions,
            tools=tuple(tool.spec for tool in self.call.tools.values()),
            steps=tuple(self.steps),
        )
        if self.call.streamed:
            asked = yield Start(provider.stream, provider.astream, (request,), streamed=True)
            patience = min(patience or HEARTBEAT_SECONDS, HEARTBEAT_SECONDS)
        else:
            asked = yield Start(provider.complete, provider.acomplete, (request,))
        while True:
            while not (yield Wait(asked, patience)):
                yield from self.recalled.hold()
                yield Emit(Waiting())
            item = yield Take(asked)
            if isinstance(item, ProviderReply):
                return item.step
            if not self.call.streamed or not isinstance(item, Event):
                raise ProviderUnavailable("The provider ended without an answer.")
            yield Emit(item)
            yield from self.recalled.hold()

    def turn(self, status: Status, error: TurnError | None = None) -> Turn:
        """Return what there is so far as a turn."""
        return Turn(user=self.recalled.user, steps=tuple(self.steps), status=status, error=error)

    # The calls of the last step.

    def _answer_calls(self) -> Flow[bool]:
        """Give each call of the last step its result; tell whether the model is to hear them."""
        number, step = len(self.steps) - 1, self.steps[-1]
        if step.finish_reason != "tool_calls" or not step.tool_calls():
            return False
        decided = [each for place, each in self.recalled.approvals.items() if place[0] == number]
        if len(self.steps) >= self.max_steps and not decided:
            return False
        runs = yield from self._sort(number)
        yield from self._run(number, runs)
        return not self.waiting and not (decided and all(each.ends_the_turn for each in decided))

    def _sort(self, number: int) -> Flow[list[Run]]:
        """Return the calls that may run; note on the step what is refused, and what waits."""
        runs, waiting = [], []
        for index, call in enumerate(self.steps[number].tool_calls()):
            if call.result is not None:
                continue
            tool = self.call.tools.get(call.name)
            approval = self.recalled.approvals.get((number, index))
            if approval is None:
                reason = None
                if tool is not None:
                    context = self._context(number, index, call)
                    reason = yield Do(tool.gate, tool.agate, (call, context))
                if reason is None:
                    runs.append(Run(index, call, tool))
                else:
                    gated = call.model_copy(update={"approval_reason": reason})
                    self._replace(number, index, gated)
                    waiting.append(of_call(gated, _expiry(tool)))
            elif approval.refusal is not None:
                self._set_result(number, index, approval.refusal)
            elif approval.is_undecided:
                waiting.append(approval.asked)
            else:
                allowed = call.model_copy(update={"edited": approval.edited})
                self._replace(number, index, allowed)
                runs.append(Run(index, allowed, tool, approved=True))
        if waiting and not self.recalled.can_pause:
            raise ApprovalNotResumable(
                f"The tool {waiting[0].name!r} needs a person's approval, and this call keeps no "
                "conversation that could wait for it: mix in RemembersConversations and bind it.",
                waiting,
            )
        self.waiting = tuple(waiting)
        return runs

    def _run(self, number: int, runs: list[Run]) -> Flow[None]:
        groups = list(_groups(runs))
        if any(not run.approved for run in runs):
            noted = Noted(number, -1, self.steps[number], _slowest(groups[0]))
            yield from self.recalled.journal(noted)
        for position, group in enumerate(groups):
            following = _slowest(groups[position + 1]) if position + 1 < len(groups) else None
            if len(group) == 1:
                yield from self._run_one(number, group[0], following)
            else:
                yield from self._run_beside(number, group, following)

    def _run_one(self, number: int, run: Run, following: Tool | None) -> Flow[None]:
        yield from self._start(number, run)
        if run.tool is None:
            result = missing_tool(run.call.name)
        else:
            result = yield Do(run.tool.run, run.tool.arun, self._arguments(number, run))
        yield from self._land(number, run, result, following)

    def _run_beside(self, number: int, group: list[Run], following: Tool | None) -> Flow[None]:
        """Run calls beside each other; each result is kept as soon as it is there."""
        running: dict[int, tuple[Run, Any]] = {}
        for run in group:
            yield from self._start(number, run)
            assert run.tool is not None
            arguments = self._arguments(number, run)
            running[run.index] = run, (yield Start(run.tool.run_beside, run.tool.arun, arguments))
        while running:
            yield from self.recalled.hold()
            for index, (run, handle) in tuple(running.items()):
                if (yield Wait(handle, GLANCE_SECONDS)):
                    del running[index]
                    slowest = _slowest(run for run, _ in running.values()) or following
                    yield from self._land(number, run, (yield Take(handle)), slowest)

    def _start(self, number: int, run: Run) -> Flow[None]:
        yield from self.recalled.hold(run.tool)
        if run.approved:
            yield from self.recalled.journal(Noted(number, run.index, run.call, run.tool))
        yield Emit(ToolStarted(run.call))

    def _land(
        self, number: int, run: Run, result: ToolResult, following: Tool | None
    ) -> Flow[None]:
        self._set_result(number, run.index, result)
        yield from self.recalled.journal(Noted(number, run.index, result, following))
        yield Emit(ToolFinished(self.steps[number].tool_calls()[run.index]))

    def _arguments(self, number: int, run: Run) -> tuple[ToolCall, ToolContext]:
        return run.call, self._context(number, run.index, run.call)

    def _context(self, number: int, index: int, call: ToolCall) -> ToolContext:
        recalled = self.recalled
        return ToolContext(
            agent=self.agent,
            participant=recalled.speaker,
            conversation_id=recalled.conversation_id,
            call_id=call.id,
            idempotency_key=f"{recalled.turn_id}:{number}:{index}",
        )

    def _set_result(self, number: int, index: int, result: ToolResult) -> None:
        self.steps[number] = self.steps[number].with_results({index: result})

    def _replace(self, number: int, index: int, call: ToolCall) -> None:
        self.steps[number] = self.steps[number].with_calls({index: call})


def _groups(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Yield runs in order: neighbours that may run beside each other together, others alone."""
    for beside, neighbours in groupby(runs, key=lambda run: run.beside):
        if beside:
            yield list(neighbours)
        else:
            yield from ([run] for run in neighbours)


def _slowest(runs: Iterable[Run]) -> Tool | None:
    tools = [run.tool for run in runs if run.tool is not None]
    return max(tools, key=lambda tool: tool.timeout or 0, default=None)


def _expiry(tool: Tool | None) -> datetime | None:
    if tool is None or tool.approval_expires is None:
        return None
    return datetime.now(UTC) + tool.approval_expires
