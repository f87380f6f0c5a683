"""Tool calls in the admin: who sees and decides what, the list, and a page for each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent_memory import Approve, Deny, Edit
from agent_memory.admin import ToolApprovalAdmin
from agent_memory.models import ToolApproval
from agent_memory.participants import Participant
from tests.admin.acting import staff
from tests.admin.calls import APPROVALS, HOUR, PAY, decide, detail, pause, status_of, url_of
from tests.admin.saying import conversation_page, seen, store

pytestmark = pytest.mark.django_db


def test_who_may_not_decide_sees_what_waits_and_is_refused(client: Client) -> None:
    (call,) = pause("one", PAY)
    staff(client, "view_conversation", "view_conversationmessage", "view_toolapproval")
    assert "pay" in seen(client.get(APPROVALS))
    page = client.get(conversation_page("one"))
    assert "It costs." in seen(page)
    assert "decide/" not in page.content.decode()
    assert client.get(url_of(call)).status_code == 403
    assert decide(client, (call, {"decision": "approve"})).status_code == 403
    assert status_of(call) == ["pending"]


def test_who_may_decide_sees_what_waits_and_nothing_of_the_conversation(client: Client) -> None:
    (call,) = pause("one", PAY)
    staff(client, "decide_toolapproval")
    assert "It costs." in seen(client.get(url_of(call)))
    assert client.get(conversation_page("one")).status_code == 403
    assert decide(client, (call, {"decision": "approve"}))["Location"] == APPROVALS
    assert status_of(call) == ["approved"]


def test_a_request_from_elsewhere_is_refused() -> None:
    (call,) = pause("one", PAY)
    client = Client(enforce_csrf_checks=True)
    staff(client, "decide_toolapproval")
    assert decide(client, (call, {"decision": "approve"})).status_code == 403
    assert status_of(call) == ["pending"]


def test_a_page_of_your_own_says_which_calls_somebody_may_decide_on(
    decider: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,), (two,) = pause("one", ("pay", {})), pause("two", ("send", {}))
    monkeypatch.setattr(
        ToolApprovalAdmin,
        "get_queryset",
        lambda self, request: ToolApproval.objects.filter(tool="pay"),
    )
    decide(decider, (one, {"decision": "approve"}), (two, {"decision": "approve"}))
    assert status_of(one, two) == ["approved", "pending"]


def test_the_list_shows_what_waits_and_the_rest_when_asked(decider: Client) -> None:
    pause("one", ("pay", {}), ("send", {}))
    pause("two", ("burn", {}), expires_at=datetime.now(UTC) - HOUR)
    store.decide("one", {"b": Approve()})
    rows = [str(row) for row in decider.get(APPROVALS).context["cl"].result_list]
    assert rows == ["pay: pending"]
    everything = decider.get(f"{APPROVALS}?state=all").context["cl"].result_list
    assert {row.tool for row in everything} == {"pay", "send", "burn"}
    approved = decider.get(f"{APPROVALS}?state=approved").context["cl"].result_list
    assert [row.tool for row in approved] == ["send"]
    assert [*decider.get(f"{APPROVALS}?state=x").context["cl"].result_list] == []


def test_a_row_leads_to_its_form_and_its_conversation(decider: Client) -> None:
    (call,) = pause("a/b", PAY)
    page = decider.get(APPROVALS).content.decode()
    assert f'href="{url_of(call)}"' in page
    assert f'href="{conversation_page("a/b")}"' in page


def test_the_list_takes_as_many_queries_for_forty_rows_as_for_four(decider: Client) -> None:
    counts = []
    for upto in (4, 40):
        for number in range(ToolApproval.objects.count(), upto):
            user = User.objects.create_user(f"ada{number}")
            pause(f"c{number}", PAY, participant=Participant.of(user))
        decider.get(APPROVALS)
        with CaptureQueriesContext(connection) as queries:
            decider.get(APPROVALS)
        counts.append(len(queries))
        assert not any('"steps"' in query["sql"] for query in queries)
    assert counts[0] == counts[1]


def test_a_page_of_a_call_tells_who_decided_and_how(decider: Client) -> None:
    (call,) = pause("one", PAY)
    user = User.objects.get()
    store.decide("one", {"a": Edit({"to": "Bob"})}, decided_by=user, note="By phone.")
    page = seen(decider.get(detail(call)))
    for words in ('"to": "Ada"', '"to": "Bob"', "By phone.", "user: manager", "approved"):
        assert words in page
    (other,) = pause("two", PAY)
    store.decide("two", {"a": Deny("Too much.")})
    assert "Too much." in seen(decider.get(detail(other)))


def test_nobody_adds_changes_or_deletes_calls_not_even_a_superuser(admin_client: Client) -> None:
    (call,) = pause("one", PAY)
    assert admin_client.post(f"{APPROVALS}add/", {"tool": "x"}).status_code == 403
    assert admin_client.post(detail(call), {"status": "approved"}).status_code == 403
    assert admin_client.post(f"{APPROVALS}{call.pk}/delete/", {"post": "yes"}).status_code == 403
    assert status_of(call) == ["pending"]
