"""Going on with a turn that waited for a person, or giving it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Unpack

from agent_memory import flow
from agent_memory.agents import Agent, refuse_running_loop
from agent_memory.approvals import Approval, Decision, Decisions, Edit, decided, match, pending
from agent_memory.calls import Call, ResumeOptions, Resumption, check_options, check_wait
from agent_memory.exceptions import ApprovalMismatch, ApprovalNotResumable
from agent_memory.flow import Flow
from agent_memory.participants import Participant
from agent_memory.responses import Response
from agent_memory.streams import AgentStream, AsyncAgentStream
from agent_memory.tools import Tool


class ResumesTurns(Agent):
    """What an agent that is bound to a conversation does with its paused turn."""

    def resume(
        self, decisions: Decisions | None = None, **options: Unpack[ResumeOptions]
    ) -> Response:
        """
        Settle what is decided, and run the paused turn on when nothing waits any more.

        ``decisions`` are ``{call_id: Approve() / Deny("why") / Edit({...})}``, with
        ``"*"`` for all calls that no other key names; ``ResumeOptions`` tells the
        options. While something waits still, the response is ``paused`` again and
        nothing has run. It is one turn: steps and usage are those of all its parts.

        Raises ``ApprovalMismatch`` for a decision on a call that does not wait, and
        for arguments that do not fit its tool; ``ApprovalNotResumable`` when nothing is
        paused or the agent lacks an approved tool; and what a prompt raises. When it
        fails, the turn stays paused with what was done, and ``resume()`` goes on.
        """
        refuse_running_loop("resume", "aresume")
        return flow.run(self.turn(self._resumption(decisions, options)))

    async def aresume(
        self, decisions: Decisions | None = None, **options: Unpack[ResumeOptions]
    ) -> Response:
        """See resume()."""
        return await flow.arun(self.turn(self._resumption(decisions, options)))

    def stream_resume(
        self, decisions: Decisions | None = None, **options: Unpack[ResumeOptions]
    ) -> AgentStream:
        """See resume() and stream()."""
        refuse_running_loop("stream_resume", "astream_resume")
        call = self._resumption(decisions, options, streamed=True)
        return AgentStream(flow.stream(self.turn(call)))

    def astream_resume(
        self, decisions: Decisions | None = None, **options: Unpack[ResumeOptions]
    ) -> AsyncAgentStream:
        """See stream_resume()."""
        call = self._resumption(decisions, options, streamed=True)
        return AsyncAgentStream(flow.astream(self.turn(call), result=lambda _: None))

    def discard_pending(self) -> None:
        """
        Give the paused turn up, as if it had not been asked.

        A turn of which a tool has run stays, as a failed one. Raises
        ``ApprovalNotResumable`` when nothing is paused, and ``ConversationBusy``
        while somebody resumes it.
        """
        refuse_running_loop("discard_pending", "adiscard_pending")
        flow.run(self.discarding())

    async def adiscard_pending(self) -> None:
        """See discard_pending()."""
        await flow.arun(self.discarding())

    def discarding(self) -> Flow[None]:
        """Reserve the paused turn, and drop it; what knows the store writes this."""
        raise NotImplementedError

    def _resumption(
        self, decisions: Decisions | None, options: ResumeOptions, *, streamed: bool = False
    ) -> Call:
        check_options("A resumption", options, ResumeOptions)
        if decisions is not None and not isinstance(decisions, Mapping):
            raise ValueError('Decisions are {call_id: Approve() / Deny("why") / Edit({...})}.')
        wanted = options.get("model")
        provider, model = self._provider_and_model(wanted)
        return Call(
            None,
            provider,
            model,
            streamed,
            wait=check_wait(options.get("wait", 0)),
            resumption=Resumption(
                decisions, options.get("decided_by"), options.get("note", ""), wanted
            ),
        )


def check_tools(approvals: Iterable[Approval], tools: Mapping[str, Tool]) -> None:
    """Raise ``ApprovalNotResumable`` for an approved call whose tool has gone."""
    approvals = tuple(approvals)
    for approval in approvals:
        if approval.status == "approved" and approval.asked.name not in tools:
            raise ApprovalNotResumable(
                f"The agent has no tool {approval.asked.name!r} any more: give it back to the "
                "agent, or discard_pending().",
                pending(approvals),
            )


def decide_on(
    approvals: Iterable[Approval],
    resumption: Resumption,
    tools: Mapping[str, Tool],
    decided_by: Participant | None,
) -> tuple[tuple[Approval, ...], dict[str, Decision]]:
    """
    Return approvals with the decisions of a resumption on them, and those by call id.

    Raises ``ApprovalMismatch`` for an id that does not wait and for arguments
    that do not fit the tool, and as check_tools() does.
    """
    approvals = tuple(approvals)
    waiting = pending(approvals)
    made = match(waiting, resumption.decisions)
    now = datetime.now(UTC)
    settled = tuple(
        decided(approval, made[approval.asked.id], by=decided_by, note=resumption.note, at=now)
        if approval.asked in waiting and approval.asked.id in made
        else approval
        for approval in approvals
    )
    check_tools(settled, tools)
    for asked in waiting:
        decision = made.get(asked.id)
        if isinstance(decision, Edit):
            try:
                tools[asked.name].check_arguments(decision.arguments)
            except ValueError as error:
                raise ApprovalMismatch(
                    f"The arguments given for {asked.id!r:.80} do not fit {asked.name!r}. {error}",
                    waiting,
                ) from None
    return settled, made
