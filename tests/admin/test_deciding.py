"""Decisions on tool calls in the admin: each once, whatever they hold and whatever happens meanwhile."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agent_memory import Deny
from agent_memory.messages import ToolResult
from agent_memory.models import ToolApproval
from agent_memory.participants import Participant
from agent_memory.signals import approval_decided
from tests.admin.acting import logged, told
from tests.admin.calls import APPROVALS, HOUR, PAY, decide, detail, pause, status_of, url_of
from tests.admin.saying import HOSTILE, conversation_page, seen, store

pytestmark = pytest.mark.django_db

ODD = {"note": "\u202e\u200b\0\ud800</textarea><script>alert(1)</script>", "n": [1, None, True]}


def test_calls_are_approved_edited_and_denied_in_one_form(
    decider: Client, django_capture_on_commit_callbacks: Any
) -> None:
    one, two, three, four = pause("one", PAY, PAY, PAY, PAY, title="Refunds")
    heard: dict[str, Any] = {}
    approval_decided.connect(
        lambda approval, **kwargs: heard.update({approval.asked.id: approval}),
        weak=False,
        dispatch_uid="test",
    )
    try:
        with django_capture_on_commit_callbacks(execute=True):
            answer = decide(
                decider,
                (one, {"decision": "approve"}),
                (two, {"decision": "edit", "arguments": '{"to": "Bob"}'}),
                (three, {"decision": "deny", "denial": "Too much."}),
                (four, {"decision": ""}),
                note="By phone.",
            )
    finally:
        approval_decided.disconnect(dispatch_uid="test")
    assert answer["Location"] == conversation_page("one")
    assert told(answer) == [
        "3 tool calls are decided in “Refunds”. 1 more waits there.",
    ]
    assert status_of(one, two, three, four) == ["approved", "approved", "denied", "pending"]
    assert heard["b"].edited == {"to": "Bob"}
    assert heard["c"].text == "Too much."
    user = User.objects.get(username="manager")
    assert {each.decided_by for each in heard.values()} == {Participant.of(user)}
    assert {each.note for each in heard.values()} == {"By phone."}
    assert logged() == [
        "manager: pay: pending: Approved.",
        "manager: pay: pending: Approved with other arguments.",
        "manager: pay: pending: Denied.",
    ]
    last = decide(decider, (four, {"decision": "deny"}))
    assert told(last)[-1].endswith("Nothing waits there any more: a worker runs the turn on.")
    assert "A worker runs the turn on." in seen(decider.get(conversation_page("one")))


def test_calls_of_several_conversations_are_decided_in_one_form(decider: Client) -> None:
    (one,), (two,) = pause("one", PAY), pause("two", PAY)
    chosen = {"action": "decide_selected", "_selected_action": [one.pk, two.pk]}
    leads = decider.post(APPROVALS, chosen)
    assert leads["Location"] == url_of(one, two)
    answer = decide(decider, (one, {"decision": "approve"}), (two, {"decision": "deny"}))
    assert answer["Location"] == APPROVALS
    assert status_of(one, two) == ["approved", "denied"]
    assert len(told(answer)) == 2


@pytest.mark.parametrize("decision", ["approve", "edit"])
def test_arguments_that_are_sent_back_as_they_were_shown_are_no_edit(
    decider: Client, decision: str
) -> None:
    (call,) = pause("one", ("pay", {**ODD, "huge": 10**30, "half": 0.1, "inf": float("inf")}))
    shown = decider.get(url_of(call)).context["waiting"].forms.calls[0].text
    sent = {"decision": decision, "arguments": shown.replace("\n", "\r\n")}
    decide(decider, (call, sent))
    call.refresh_from_db()
    assert (call.status, call.arguments_used) == ("approved", "")


def test_odd_arguments_hide_nothing_and_are_harmless(decider: Client) -> None:
    (call,) = pause(HOSTILE, (HOSTILE, ODD), title=HOSTILE, agent=HOSTILE)
    for url in (url_of(call), conversation_page(HOSTILE), APPROVALS, detail(call)):
        page = decider.get(url)
        assert HOSTILE in seen(page), url
        assert "<script>alert" not in page.content.decode()
    shown = seen(decider.get(url_of(call)))
    assert "\\u202e\\u200b\\u0000\\ud800" in shown


def test_other_arguments_are_taken_as_they_are_written(decider: Client) -> None:
    (call,) = pause("one", PAY)
    sent = {"decision": "edit", "arguments": json.dumps(ODD)}
    decide(decider, (call, sent))
    (waiting,) = ToolApproval.objects.filter(pk=call.pk)
    assert json.loads(waiting.arguments_used) == ODD


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{", "This is no JSON"),
        ("", "This is no JSON"),
        ("[1]", "Arguments are a JSON object"),
        ('{"n": NaN}', "This is no JSON"),
        ("[" * 100_000, "This is no JSON"),
        ('{"n": ' + "9" * 5000 + "}", "This is no JSON"),
    ],
)
def test_what_are_no_arguments_is_told_on_the_form_and_nothing_is_decided(
    decider: Client, arguments: str, words: str
) -> None:
    one, two = pause("one", PAY, PAY)
    answer = decide(
        decider,
        (one, {"decision": "edit", "arguments": arguments}),
        (two, {"decision": "approve"}),
    )
    assert words in seen(answer)
    assert "<details open>" in answer.content.decode()
    assert status_of(one, two) == ["pending", "pending"]


def test_changed_arguments_are_not_approved_by_mistake(decider: Client) -> None:
    (call,) = pause("one", ("pay", {"amount": 1}))
    answer = decide(decider, (call, {"decision": "approve", "arguments": '{"amount": true}'}))
    assert "You changed the arguments" in seen(answer)
    assert status_of(call) == ["pending"]


def test_a_form_that_decides_nothing_says_so(decider: Client) -> None:
    (call,) = pause("one", PAY)
    assert "Decide on one call at least." in seen(decide(decider, (call, {"decision": ""})))
    answer = decide(decider, (call, {"decision": "explode"}))
    assert answer.status_code == 200
    assert status_of(call) == ["pending"]


def test_arguments_that_are_too_long_for_a_form_are_approved_or_denied(decider: Client) -> None:
    (call,) = pause("one", ("pay", {"text": "x" * 60_000}))
    page = decider.get(url_of(call)).content.decode()
    assert f"call-{call.pk}-arguments" not in page
    assert 'value="edit"' not in page
    decide(decider, (call, {"decision": "approve"}))
    assert status_of(call) == ["approved"]


def test_what_is_decided_already_is_told_and_stays(decider: Client) -> None:
    one, two = pause("one", PAY, ("send", {}))
    store.decide("one", {"a": Deny()})
    answer = decide(decider, (one, {"decision": "approve"}), (two, {"decision": "approve"}))
    assert "“pay” waits no more: denied." in told(answer)
    assert status_of(one, two) == ["denied", "approved"]


def test_what_expires_meanwhile_is_told(decider: Client) -> None:
    (call,) = pause("one", PAY, expires_at=datetime.now(UTC) + HOUR)
    assert "Expires" in seen(decider.get(url_of(call)))
    ToolApproval.objects.update(expires_at=datetime.now(UTC) - HOUR)
    answer = decide(decider, (call, {"decision": "approve"}))
    assert answer["Location"] == APPROVALS
    assert told(answer) == ["“pay” waits no more: expired."]
    assert "A worker runs the turn on." in seen(decider.get(conversation_page("one")))


@pytest.mark.parametrize("query", ["", "id=0", "id=x&id=\u00b2", f"id={'9' * 40}", "id=-1"])
def test_what_vanishes_meanwhile_is_told(decider: Client, query: str) -> None:
    url = f"{reverse('admin:agent_memory_toolapproval_decide')}?{query}"
    for answer in (decider.get(url), decider.post(url, {})):
        assert answer["Location"] == APPROVALS
    assert told(answer)[-1] == "Tool calls are gone, with their turn or conversation."


def test_what_is_left_is_decided_although_something_has_vanished(decider: Client) -> None:
    (one,), (two,) = pause("one", PAY), pause("two", PAY)
    store.clear("one")
    answer = decide(decider, (one, {"decision": "approve"}), (two, {"decision": "approve"}))
    assert "Tool calls are gone, with their turn or conversation." in told(answer)
    assert status_of(two) == ["approved"]


def test_a_conversation_that_is_cleared_meanwhile_is_told(
    decider: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (call,) = pause("one", PAY)
    monkeypatch.setattr(
        "agent_memory.admin.approvals.is_waiting", lambda approval: not store.clear("one")
    )
    answer = decide(decider, (call, {"decision": "approve"}))
    (words,) = told(answer)
    assert words.startswith("Nothing was decided in “one”")
    assert logged() == []


def test_a_later_call_of_the_same_id_is_not_decided_by_an_old_form(
    decider: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old,) = pause("one", PAY)

    def meanwhile(approval: ToolApproval) -> bool:
        """Somebody decides, a worker runs the turn on, and the next one waits for another call a."""
        store.decide("one", {"a": Deny("No.")})
        reservation = store.reserve("one", resume=True)
        assert reservation.paused is not None
        turn = reservation.paused.turn
        (step,) = turn.steps
        steps = (step.with_results({0: ToolResult(value="No.", denied=True)}),)
        done = turn.model_copy(update={"steps": steps, "status": "completed"})
        store.settle("one", done, reservation=reservation)
        pause("one", ("pay", {"amount": 1_000_000}))
        return True

    monkeypatch.setattr("agent_memory.admin.approvals.is_waiting", meanwhile)
    answer = decide(decider, (old, {"decision": "approve"}))
    (words,) = told(answer)
    assert words.startswith("Nothing was decided in “one”")
    assert status_of(*ToolApproval.objects.order_by("pk")) == ["denied", "pending"]


def test_a_call_that_no_version_can_read_is_shown_and_not_decided(decider: Client) -> None:
    (call,) = pause("one", PAY)
    for stored in ("no JSON <b>", "[]", '{"id": "a"}', "[" * 100_000):
        ToolApproval.objects.update(asked=stored)
        page = seen(decider.get(url_of(call)))
        assert "cannot be read" in page
        assert stored[:100] in page
        assert decide(decider, (call, {"decision": "approve"})).status_code == 200
        assert decider.get(detail(call)).status_code == 200
    assert status_of(call) == ["pending"]
