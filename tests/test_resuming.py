"""Turns that wait for a person, over both stores and in all four ways to go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory import Agent, Approve, Deny, Edit, RemembersConversations, tool
from agent_memory.approvals import DENIED, EXPIRED, PendingApproval
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ApprovalsPending,
    ConversationBusy,
    ConversationDoesNotExist,
    ProviderUnavailable,
)
from agent_memory.messages import Message, ToolCall, ToolResult, Usage
from agent_memory.participants import Participant
from agent_memory.responses import ApprovalRequested, Finished, Started, ToolFinished
from agent_memory.signals import (
    approval_decided,
    approval_requested,
    turn_completed,
    turn_failed,
)
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, override_provider
from agent_memory.tools import ToolContext

paid: list[tuple[str, int]] = []
looked: list[str] = []


@pytest.fixture(autouse=True)
def nothing_paid():
    paid.clear()
    looked.clear()


@tool(needs_approval="Money leaves the house.")
def refund(order: str, amount: int = 10) -> str:
    """Pay an order back."""
    paid.append((order, amount))
    return f"{amount} paid"


@tool
def look(order: str) -> str:
    """Look an order up."""
    looked.append(order)
    return f"{order} is open"


class Coach(RemembersConversations, Agent):
    tools = [refund, look]


def asks(order: str = "A", call_id: str = "call_1", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name="refund", arguments={"order": order, **arguments})


def looks(order: str = "A", call_id: str = "call_9") -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments={"order": order})


@pytest.fixture
def script(scripted_provider: ScriptedProvider) -> ScriptedProvider:
    return scripted_provider


def elsewhere(response: Any) -> Coach:
    """Return an agent as another process has it, which knows the id alone."""
    return Coach().continue_conversation(response.conversation_id)


def statuses(store: ConversationStore, conversation_id: str) -> list[str]:
    return [message.status for message in store.paginate_conversation_messages(conversation_id)]


# Pausing.


def test_a_gated_call_pauses_the_turn_and_is_stored_before_the_caller_sees_it(
    store, script, user, ask
):
    script.extend([["One moment.", asks(amount=5)]])
    response = ask(Coach().for_user(user), "Pay me back.")
    waiting = PendingApproval(
        "call_1", "refund", {"order": "A", "amount": 5}, "Money leaves the house."
    )
    assert (response.status, response.text) == ("paused", "One moment.")
    assert response.pending_approvals == (waiting,)
    assert store.pending_approvals_for(response.conversation_id) == (waiting,)
    assert statuses(store, response.conversation_id) == ["paused", "completed"]
    assert store.load(response.conversation_id) == ()
    assert paid == []


def test_a_prompt_on_a_paused_turn_is_told_what_waits_and_asks_no_model(store, script, user, ask):
    script.extend([asks()])
    coach = Coach().for_user(user)
    response = ask(coach, "Pay me back.")
    with pytest.raises(ApprovalsPending) as caught:
        ask(coach, "Hello?")
    assert caught.value.pending == response.pending_approvals
    assert len(script.requests) == 1


def test_the_other_calls_of_the_step_run_once(store, script, user, ask, resume):
    script.extend([[looks("A", "l1"), asks(), looks("B", "l2")], "Done."])
    response = ask(Coach().for_user(user), "Pay me back.")
    assert looked == ["A", "B"]
    done = resume(elsewhere(response), {"call_1": Approve()})
    assert looked == ["A", "B"]
    assert [result.value for result in done.turn.tool_results()] == [
        "A is open",
        "10 paid",
        "B is open",
    ]


def test_arguments_that_do_not_fit_need_no_approval(store, script, user, ask):
    script.extend([ToolCall(id="call_1", name="refund", arguments={"amount": "x"}), "Sorry."])
    response = ask(Coach().for_user(user), "Pay me back.")
    assert (response.status, response.text) == ("completed", "Sorry.")
    (result,) = response.turn.tool_results()
    assert result.failed
    assert paid == []


def test_without_memory_a_gated_call_is_refused_before_any_tool_of_its_step_runs(
    script, ask, nothing_paid
):
    script.extend([[looks(), asks()]] * 2)
    for agent in (Coach(), Coach().without_memory()):
        with pytest.raises(ApprovalNotResumable, match="keeps no conversation"):
            ask(agent, "Pay me back.")
    assert looked == paid == []


def test_a_turn_paused_without_a_participant_belongs_to_nobody(store, script, ask, resume):
    script.extend([asks(), "Done."])
    response = ask(Coach().for_participant(None), "Pay me back.")
    assert store.conversation_belongs_to(response.conversation_id, None)
    assert resume(elsewhere(response), {"*": Approve()}).text == "Done."


# Going on.


def test_an_approved_call_runs_and_the_model_goes_on_in_another_process(
    store, script, user, ask, resume
):
    script.extend([asks(), "Paid."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    done = resume(elsewhere(paused), {"call_1": Approve()})
    assert paid == [("A", 10)]
    assert (done.text, done.status, done.pending_approvals) == ("Paid.", "completed", ())
    first, second = script.requests
    assert second.messages == first.messages == (Message("user", "Pay me back."),)
    assert second.steps == done.turn.steps[:1]
    assert (done.user_message_id, done.assistant_message_id) == (
        paused.user_message_id,
        paused.assistant_message_id,
    )
    assert store.load(paused.conversation_id) == done.turn.messages
    assert statuses(store, paused.conversation_id) == ["completed", "completed"]
    assert store.get(paused.conversation_id).turns == 1


def test_a_resumed_turn_is_one_turn_with_the_usage_of_all_its_parts(store, user, ask, resume):
    script = ScriptedProvider([asks(), "Paid."], usage=Usage(input_tokens=3, output_tokens=2))
    with override_provider(script):
        paused = ask(Coach(generate_titles=False).for_user(user), "Pay me back.")
        done = resume(elsewhere(paused), {"*": Approve()})
    assert done.usage == Usage(input_tokens=6, output_tokens=4)
    assert store.get(paused.conversation_id).usage == done.usage


def test_the_next_prompt_is_sent_the_whole_turn(store, script, user, ask, resume):
    script.extend([asks(), "Paid.", "You are welcome."])
    coach = Coach().for_user(user)
    ask(coach, "Pay me back.")
    done = resume(coach, {"*": Approve()})
    ask(coach, "Thanks.")
    assert script.requests[-1].messages == (*done.turn.messages, Message("user", "Thanks."))


def test_a_denial_with_a_text_lets_the_model_go_on(store, script, user, ask, resume):
    script.extend([asks(), "I may not."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    done = resume(elsewhere(paused), {"call_1": Deny("Too much.")})
    assert done.text == "I may not."
    assert done.turn.tool_results() == (ToolResult(value="Too much.", denied=True),)
    assert paid == []


def test_a_bare_denial_ends_the_turn_without_the_model(store, script, user, ask, resume):
    script.extend([asks()])
    paused = ask(Coach().for_user(user), "Pay me back.")
    done = resume(elsewhere(paused), {"call_1": Deny()})
    assert (done.status, done.text) == ("completed", "")
    assert done.turn.tool_results() == (ToolResult(value=DENIED, denied=True),)
    assert len(script.requests) == 1
    assert store.load(paused.conversation_id) == done.turn.messages


def test_an_edited_call_runs_with_its_arguments_and_both_are_kept(store, script, user, ask, resume):
    script.extend([asks(amount=900), "50 paid."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    done = resume(elsewhere(paused), {"call_1": Edit({"order": "A", "amount": 50})})
    assert paid == [("A", 50)]
    (call,) = done.turn.tool_calls()
    assert (call.arguments["amount"], call.edited) == (900, {"order": "A", "amount": 50})
    assert "A person changed the arguments" in store.load(paused.conversation_id)[2].text
    answer, _ = store.paginate_conversation_messages(paused.conversation_id)
    assert answer.tool_calls() == (call,)


def test_an_edit_that_does_not_fit_is_a_mismatch_and_settles_nothing(
    store, script, user, ask, resume
):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    with pytest.raises(ApprovalMismatch, match="amount") as caught:
        resume(elsewhere(paused), {"call_1": Edit({"order": "A", "amount": "much"})})
    assert caught.value.pending == paused.pending_approvals
    assert store.pending_approvals_for(paused.conversation_id) == paused.pending_approvals
    assert resume(elsewhere(paused), {"*": Approve()}).text == "Done."


def test_an_edit_that_was_decided_elsewhere_and_does_not_fit_is_a_failed_result(
    store, script, user, ask, resume
):
    script.extend([asks(), "Sorry."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    store.decide(paused.conversation_id, {"call_1": Edit({"amount": "much"})})
    done = resume(elsewhere(paused))
    assert (done.text, paid) == ("Sorry.", [])
    (result,) = done.turn.tool_results()
    assert result.failed


def test_partial_decisions_stay_and_nothing_runs_until_all_is_decided(
    store, script, user, ask, resume
):
    script.extend([[asks("A", "a"), asks("B", "b")], "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    still = resume(elsewhere(paused), {"b": Deny("No.")})
    assert (still.status, [each.id for each in still.pending_approvals]) == ("paused", ["a"])
    assert resume(elsewhere(paused)).pending_approvals == still.pending_approvals
    assert (paid, len(script.requests)) == ([], 1)
    done = resume(elsewhere(paused), {"a": Approve()})
    assert paid == [("A", 10)]
    assert [result.value for result in done.turn.tool_results()] == ["10 paid", "No."]


def test_two_people_decide_and_a_worker_runs_on(store, script, user, ask, resume):
    script.extend([[asks("A", "a"), asks("B", "b")], "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    (left,) = store.decide(paused.conversation_id, {"a": Approve()}, decided_by=user)
    assert left.id == "b"
    assert store.decide(paused.conversation_id, {"b": Approve()}, note="Fine.") == ()
    with pytest.raises(ApprovalsPending) as caught:
        ask(elsewhere(paused), "Hello?")
    assert caught.value.pending == ()
    assert resume(elsewhere(paused)).text == "Done."
    assert paid == [("A", 10), ("B", 10)]


@pytest.mark.parametrize("decisions", [{"other": Approve()}, {"a": Approve(), "other": Deny()}])
def test_a_decision_on_a_call_that_does_not_wait_runs_nothing_and_frees_the_turn(
    store, script, user, ask, resume, decisions
):
    script.extend([[asks("A", "a")], "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    with pytest.raises(ApprovalMismatch) as caught:
        resume(elsewhere(paused), decisions)
    assert caught.value.pending == paused.pending_approvals
    assert paid == []
    assert resume(elsewhere(paused), {"*": Approve()}).text == "Done."


def test_a_late_decision_is_a_mismatch_and_pays_nothing_twice(store, script, user, ask, resume):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    resume(elsewhere(paused), {"call_1": Approve()})
    with pytest.raises(ApprovalMismatch):
        resume(elsewhere(paused), {"call_1": Approve()})
    with pytest.raises(ApprovalNotResumable):
        resume(elsewhere(paused))
    assert paid == [("A", 10)]


def test_what_cannot_be_resumed_is_named(store, script, user, resume):
    store.create("empty")
    with pytest.raises(ApprovalNotResumable, match=r"paused|waits"):
        resume(Coach().continue_conversation("empty"))
    with pytest.raises(ConversationDoesNotExist):
        resume(Coach().continue_conversation("nowhere"))
    for agent in (Coach(), Coach().for_user(user), Coach().without_memory()):
        with pytest.raises(ApprovalNotResumable, match="bound to no conversation"):
            resume(agent)
    assert script.requests == []


def test_a_paused_turn_of_somebody_else_does_not_exist(store, script, user, team, ask, resume):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    foreign = Coach().continue_conversation(paused.conversation_id, team, must_own=True)
    with pytest.raises(ConversationDoesNotExist):
        resume(foreign, {"*": Approve()})
    assert resume(elsewhere(paused), {"*": Approve()}).text == "Done."


def test_it_may_be_found_as_the_last_conversation_or_by_the_agents_own_id(
    store, script, user, ask, resume
):
    script.extend([asks(), "One.", asks(), "Two."])
    ask(Coach().for_user(user), "Pay me back.")
    assert resume(Coach().continue_last_conversation(user), {"*": Approve()}).text == "One."
    ask(Coach(conversation_id="mine"), "Pay me back.")
    assert resume(Coach(conversation_id="mine"), {"*": Approve()}).text == "Two."


def test_a_tool_that_has_gone_is_named_and_the_pause_stays(store, script, user, ask, resume):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    without = Coach(tools=[]).continue_conversation(paused.conversation_id)
    with pytest.raises(ApprovalNotResumable, match="no tool 'refund'"):
        resume(without, {"*": Approve()})
    assert store.pending_approvals_for(paused.conversation_id) == paused.pending_approvals
    assert resume(elsewhere(paused), {"*": Approve()}).text == "Done."


def test_a_denied_call_needs_no_tool(store, script, user, ask, resume):
    script.extend([asks()])
    paused = ask(Coach().for_user(user), "Pay me back.")
    without = Coach(tools=[]).continue_conversation(paused.conversation_id)
    assert resume(without, {"*": Deny()}).status == "completed"


def test_several_pauses_in_one_turn_and_a_server_that_reuses_ids(store, script, user, ask, resume):
    script.extend([asks("A", "call_0"), looks("B", "call_0"), asks("C", "call_0"), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    again = resume(elsewhere(paused), {"call_0": Approve()})
    assert again.status == "paused"
    assert [each.arguments["order"] for each in again.pending_approvals] == ["C"]
    assert paid == [("A", 10)]
    assert store.pending_approvals_for(paused.conversation_id) == again.pending_approvals
    done = resume(elsewhere(paused), {"call_0": Deny("Enough.")})
    assert (done.text, len(done.turn.steps)) == ("Done.", 4)
    assert [result.value for result in done.turn.tool_results()] == [
        "10 paid",
        "B is open",
        "Enough.",
    ]


def test_a_resumed_turn_makes_no_more_requests_than_one_turn_may(store, script, user, ask, resume):
    script.extend([asks(), looks(), "Never asked."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    short = Coach(max_steps=2).continue_conversation(paused.conversation_id)
    done = resume(short, {"*": Approve()})
    assert (done.status, len(script.requests), looked) == ("completed", 2, [])
    assert paid == [("A", 10)]


# What goes wrong.


def test_a_resume_that_fails_keeps_what_was_done_and_goes_on(store, script, user, ask, resume):
    script.extend([asks(), ProviderUnavailable("down"), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    with pytest.raises(ProviderUnavailable):
        resume(elsewhere(paused), {"*": Approve()})
    assert statuses(store, paused.conversation_id) == ["paused", "completed"]
    assert store.pending_approvals_for(paused.conversation_id) == ()
    done = resume(elsewhere(paused))
    assert (done.text, paid) == ("Done.", [("A", 10)])
    assert done.turn.tool_results() == (ToolResult(value="10 paid"),)


def test_a_resume_that_fails_after_a_further_step_keeps_that_too(store, script, user, ask, resume):
    script.extend([asks(), looks("B"), ProviderUnavailable("down"), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    with pytest.raises(ProviderUnavailable):
        resume(elsewhere(paused), {"*": Approve()})
    done = resume(elsewhere(paused))
    assert (looked, paid, len(done.turn.steps)) == (["B"], [("A", 10)], 3)


def test_a_call_whose_tool_was_interrupted_is_not_run_again(store, script, user, ask, resume):
    @tool(needs_approval=True)
    def stop(order: str) -> str:
        """Stop."""
        paid.append((order, 0))
        raise KeyboardInterrupt

    class Stopping(Coach):
        tools = [stop, refund]

    call = ToolCall(id="s", name="stop", arguments={"order": "A"})
    script.extend([[call, asks("B", "b")], "Done."])
    paused = ask(Stopping().for_user(user), "Pay me back.")
    bound = Stopping().continue_conversation(paused.conversation_id)
    with pytest.raises(KeyboardInterrupt):
        resume(bound, {"*": Approve()})
    done = resume(bound)
    assert paid == [("A", 0), ("B", 10)]
    interrupted, ran = done.turn.tool_results()
    assert interrupted.failed
    assert "may or may not have run" in interrupted.text
    assert ran.value == "10 paid"


def test_two_resumes_at_once_run_the_tool_once(store, script, user, ask, resume):
    busy: list[BaseException] = []

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        paid.append(("A", 1))
        try:
            Paying().continue_conversation(response.conversation_id).resume()
        except ConversationBusy as error:
            busy.append(error)
        return "paid"

    class Paying(RemembersConversations, Agent):
        tools = [pay]

    script.extend([ToolCall(id="p", name="pay"), "Done."])
    response = ask(Paying().for_user(user), "Pay me back.")
    agent = Paying().continue_conversation(response.conversation_id)
    assert resume(agent, {"*": Approve()}).text == "Done."
    assert (len(paid), len(busy)) == (1, 1)


# Expiry, giving up.


@tool(needs_approval=True, approval_expires=timedelta(microseconds=1))
def hurried(order: str) -> str:
    """Must be decided at once."""
    paid.append((order, 0))
    return "done"


class Hurried(RemembersConversations, Agent):
    tools = [hurried, refund]


def test_what_nobody_decided_in_time_counts_as_denied(store, script, user, ask, resume):
    script.extend([[ToolCall(id="h", name="hurried", arguments={"order": "A"}), asks()], "Done."])
    coach = Hurried().for_user(user)
    paused = ask(coach, "Pay me back.")
    assert [each.id for each in store.pending_approvals_for(paused.conversation_id)] == ["call_1"]
    with pytest.raises(ApprovalMismatch, match="expired"):
        resume(coach, {"h": Approve()})
    done = resume(coach, {"call_1": Approve()})
    assert paid == [("A", 10)]
    assert done.turn.tool_results()[0] == ToolResult(value=EXPIRED, denied=True)


def test_a_prompt_on_a_pause_that_expired_whole_ends_it_and_goes_ahead(store, script, user, ask):
    script.extend([ToolCall(id="h", name="hurried", arguments={"order": "A"}), "Hello."])
    coach = Hurried().for_user(user)
    paused = ask(coach, "Pay me back.")
    assert ask(coach, "Hello?").text == "Hello."
    assert paid == []
    assert statuses(store, paused.conversation_id) == ["completed"] * 4
    assert EXPIRED in [message.text for message in script.requests[-1].messages]


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_discarded_turn_is_gone_as_if_it_had_not_been_asked(store, script, user, ask, colour):
    script.extend(["Hello.", asks(), "Blue."])
    coach = Coach().for_user(user)
    ask(coach, "Hello")
    paused = ask(coach, "Pay me back.")
    discard(coach, colour)
    stored = store.get(paused.conversation_id)
    assert (stored.turns, len(store.paginate_conversation_messages(stored.id))) == (1, 2)
    assert ask(coach, "What now?").text == "Blue."
    assert "Pay me back." not in [message.text for message in script.requests[-1].messages]
    with pytest.raises(ApprovalNotResumable):
        discard(coach, colour)


def test_a_discarded_turn_of_which_a_tool_ran_stays_as_a_failed_one(store, script, user, ask):
    script.extend([[looks(), asks()], "Blue."])
    coach = Coach().for_user(user)
    paused = ask(coach, "Pay me back.")
    coach.discard_pending()
    assert statuses(store, paused.conversation_id) == ["failed", "completed"]
    ask(coach, "What now?")
    told = [message.text for message in script.requests[-1].messages]
    assert "A is open" in told
    assert any("needed an approval" in text for text in told)


def discard(coach: Coach, colour: str) -> None:
    if colour == "sync":
        coach.discard_pending()
    else:
        async_to_sync(coach.adiscard_pending)()


# Keys, models, contexts, news.


def test_a_key_on_a_paused_turn_gets_the_pause_again(store, script, user, ask):
    script.extend([asks()])
    coach = Coach().for_user(user)
    first = ask(coach, "Pay me back.", idempotency_key="k")
    again = ask(Coach().for_user(user), "Pay me back.", idempotency_key="k")
    assert (again.status, again.conversation_id) == ("paused", first.conversation_id)
    assert again.pending_approvals == first.pending_approvals
    assert len(script.requests) == 1


def test_a_key_on_a_resumed_turn_gets_its_answer(store, script, user, ask, resume):
    script.extend([asks(), "Done."])
    coach = Coach().for_user(user)
    ask(coach, "Pay me back.", idempotency_key="k")
    resume(coach, {"*": Approve()})
    again = ask(Coach().for_user(user), "Pay me back.", idempotency_key="k")
    assert (again.text, len(script.requests)) == ("Done.", 2)


def test_an_explicit_model_is_the_one_that_goes_on(store, script, user, ask, resume):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    resume(elsewhere(paused), {"*": Approve()}, model="another")
    assert script.requests[-1].model == "another"


def test_a_tool_has_the_same_idempotency_key_before_and_after_a_crash(
    store, script, user, ask, resume
):
    seen: list[ToolContext] = []

    @tool
    def free(context: ToolContext) -> str:
        """Note the context."""
        seen.append(context)
        return "noted"

    @tool(needs_approval=True)
    def gated(context: ToolContext) -> str:
        """Note the context."""
        seen.append(context)
        return "noted"

    class Noting(RemembersConversations, Agent):
        tools = [free, gated]

    script.extend(
        [
            [ToolCall(id="a", name="free"), ToolCall(id="b", name="gated")],
            ToolCall(id="a", name="free"),
            "Done.",
        ]
    )
    coach = Noting().for_user(user)
    response = ask(coach, "Note.")
    resume(coach, {"*": Approve()})
    turn_ids = {context.idempotency_key.rpartition(":")[0].rpartition(":")[0] for context in seen}
    assert len(turn_ids) == 1
    assert [context.idempotency_key.split(":")[1:] for context in seen] == [
        ["0", "0"],
        ["0", "1"],
        ["1", "0"],
    ]
    for context in seen:
        assert context.participant == Participant.of(user)
        assert context.conversation_id == response.conversation_id
        assert isinstance(context.agent, Noting)


def test_who_listens_is_told_of_requests_decisions_and_the_end(
    store, script, user, ask, resume, django_capture_on_commit_callbacks
):
    news: list[tuple[str, Any]] = []

    def listen(name: str) -> Any:
        def receiver(sender: Any, **facts: Any) -> None:
            news.append((name, facts))

        return receiver

    told = {
        "requested": approval_requested,
        "decided": approval_decided,
        "completed": turn_completed,
        "failed": turn_failed,
    }
    receivers = {name: listen(name) for name in told}
    for name, signal in told.items():
        signal.connect(receivers[name])
    try:
        script.extend([asks(), "Done."])
        paused = ask(Coach().for_user(user), "Pay me back.")
        with django_capture_on_commit_callbacks(execute=True):
            resume(elsewhere(paused), {"*": Approve()}, decided_by=user, note="Fine.")
    finally:
        for name, signal in told.items():
            signal.disconnect(receivers[name])
    assert sorted(name for name, _ in news) == ["completed", "decided", "requested"]
    requested, decided = dict(news)["requested"], dict(news)["decided"]
    assert requested["pending"] == paused.pending_approvals
    assert {facts["conversation_id"] for _, facts in news} == {paused.conversation_id}
    approval = decided["approval"]
    assert (approval.status, approval.decided_by, approval.note) == (
        "approved",
        Participant.of(user),
        "Fine.",
    )


def test_a_stream_tells_what_waits_after_it_is_saved(store, script, user):
    script.extend([asks(), "Done."])
    seen: list[int] = []
    events = []
    for event in Coach().for_user(user).stream("Pay me back."):
        if isinstance(event, ApprovalRequested):
            seen.append(len(store.list_conversations(user)))
        events.append(event)
    assert seen == [1]
    assert [type(event) for event in events[-2:]] == [ApprovalRequested, Finished]
    response = events[-1].response
    events = list(elsewhere(response).stream_resume({"*": Approve()}))
    assert isinstance(events[0], Started)
    assert events[0].conversation_id == response.conversation_id
    assert [event.call.result.value for event in events if isinstance(event, ToolFinished)] == [
        "10 paid"
    ]
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("options", [{"model_name": "x"}, {"conversation_id": "x"}])
def test_a_resumption_takes_no_other_options(store, user, resume, options):
    with pytest.raises(TypeError, match="takes no"):
        resume(Coach().continue_last_conversation(user), None, **options)


@pytest.mark.parametrize(
    ("decisions", "options"),
    [
        ([], {}),
        ("call_1", {}),
        ({}, {}),
        ({"call_1": True}, {}),
        ({"call_1": Approve()}, {"note": 7}),
        ({"call_1": Approve()}, {"note": "a\0"}),
        ({"call_1": Approve()}, {"decided_by": object()}),
        ({"call_1": Approve()}, {"wait": -1}),
    ],
)
def test_bad_input_is_refused_and_settles_nothing(
    store, script, user, ask, resume, decisions, options
):
    script.extend([asks(), "Done."])
    paused = ask(Coach().for_user(user), "Pay me back.")
    with pytest.raises(ValueError):  # noqa: PT011  each names its own
        resume(elsewhere(paused), decisions, **options)
    assert store.pending_approvals_for(paused.conversation_id) == paused.pending_approvals
    assert resume(elsewhere(paused), {"*": Approve()}).text == "Done."
