"""The page of a conversation: what it shows of what was said, and what it costs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agent_memory.admin import transcript
from agent_memory.approvals import Approve
from agent_memory.models import Conversation, ConversationAttachment, ConversationMessage
from agent_memory.participants import Participant
from tests.admin import talks
from tests.admin.calls import HOUR, PAY, pause
from tests.admin.saying import (
    CONVERSATIONS,
    conversation_page,
    elements,
    page_of,
    seen,
    store,
    talk,
)
from tests.testapp.models import Team

pytestmark = pytest.mark.django_db

Bubbles = list[tuple[str, str]]


def bubbles(page: str) -> Bubbles:
    """Return side and text of each message of a page."""
    found = re.findall(r'<article [^>]*data-side="(\w+)"[^>]*>(.*?)</article>', page, re.S)
    return [(side, " ".join(re.sub(r"<[^>]*>", " ", text).split())) for side, text in found]


# What is shown.


def test_a_page_shows_messages_as_they_were_said_and_what_leads_them(
    admin_client: Client, ann: User
) -> None:
    talks.rich(ann)
    shown = bubbles(page_of(admin_client, conversation_page("rich")))
    assert [side for side, _ in shown] == ["leading", *["user", "agent"] * 5]
    assert "system message that leads every turn" in shown[0][1]
    assert "Be **kind**, and short." in shown[0][1]
    assert shown[1][1].startswith("ann ")
    assert "I ordered it *last week*." in shown[1][1]
    assert shown[2][1].startswith("Clerk ")
    assert "gpt-5-mini 1,200 in, 85 out, 1,024 cached, 20 reasoning" in shown[2][1]


def test_what_an_agent_said_is_markdown_and_what_a_person_typed_is_not(
    admin_client: Client, ann: User
) -> None:
    talks.rich(ann)
    page = page_of(admin_client, conversation_page("rich"))
    assert "Your <strong>blue chair</strong> was in stock" in page
    assert "I ordered it   *last week*." in page


def test_tool_calls_hosted_calls_and_reasoning_are_folded(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    page = page_of(admin_client, conversation_page("rich"))
    main = page[page.index('id="messages-heading"') :]
    folded = re.findall(r"<details[^>]*>(.*?)</details>", main, re.S)
    summaries = [re.search(r"<summary>(.*?)</summary>", each, re.S) for each in folded]
    texts = [re.sub(r"<[^>]*>|\s+", " ", found[1]).split() for found in summaries if found]
    assert texts[:3] == [
        ["Reasoning"],
        ["Tool", "look_up_order", "done"],
        ["web_search", "run", "by", "the", "provider"],
    ]
    assert "<strong>look it up</strong>" in folded[0]
    assert "&quot;with&quot;: [\n    &quot;items&quot;,\n" in folded[1]
    assert "&quot;sku&quot;: &quot;chair-blue&quot;" in folded[1]
    assert "&quot;query&quot;: &quot;blue chair&quot;" in folded[2]


def test_failed_and_paused_turns_and_refusals_are_marked(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    shown = bubbles(page_of(admin_client, conversation_page("rich")))
    failed, refused, paused = shown[6][1], shown[8][1], shown[10][1]
    assert "Clerk failed" in failed
    assert "call_courier failed" in failed
    assert "send_mail interrupted: it may or may not have run" in failed
    assert "{&quot;to&quot;: &quot;courier" in failed
    assert "The turn failed: ProviderUnavailable" in failed
    assert "Refusal I cannot give addresses of people." in refused
    assert "Clerk paused" in paused
    assert "refund waits for approval Needs approval: Refunds above 20 need a person." in paused


def test_a_call_that_nobody_decided_on_in_time_waits_no_more(admin_client: Client) -> None:
    pause("one", PAY, expires_at=datetime.now(UTC) - HOUR)
    pause("two", PAY, expires_at=datetime.now(UTC) + HOUR)
    late, waiting = (page_of(admin_client, conversation_page(each)) for each in ("one", "two"))
    assert "pay approval expired" in bubbles(late)[1][1]
    assert "pay waits for approval" in bubbles(waiting)[1][1]
    for page, state in ((late, "decided"), (waiting, "waiting")):
        assert f'data-state="{state}"' in page
    for state, name in (("decided", "one"), ("waiting", "two")):
        listed = admin_client.get(f"{CONVERSATIONS}?state={state}").context["cl"].result_list
        assert [each.pk for each in listed] == [name]


def test_who_decided_on_a_call_and_why_is_told(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    store.decide("rich", {"call_4": Approve()}, decided_by=ann, note="A good customer.")
    paused = bubbles(page_of(admin_client, conversation_page("rich")))[10][1]
    assert "refund approved, not run yet" in paused
    assert "Decided by user: ann," in paused
    assert "Note: A good customer." in paused


def test_a_conversation_tells_whether_it_is_answering_by_the_clock_of_its_database(
    admin_client: Client,
) -> None:
    talk("one")
    reservation = store.reserve("one")
    for url in (CONVERSATIONS, conversation_page("one")):
        assert 'data-state="answering">answering now<' in page_of(admin_client, url)
    assert "An answer is being written since" in page_of(admin_client, conversation_page("one"))
    Conversation.objects.update(reserved_until=1)
    for url in (CONVERSATIONS, conversation_page("one")):
        assert 'data-state="interrupted">interrupted<' in page_of(admin_client, url)
    store.release(reservation)
    for url in (CONVERSATIONS, conversation_page("one")):
        assert 'data-state="open">open<' in page_of(admin_client, url)


def test_a_conversation_in_which_nothing_was_said_has_a_page(admin_client: Client) -> None:
    store.create("empty", title="Empty")
    assert "Nothing was said here yet." in seen(admin_client.get(conversation_page("empty")))


def test_a_row_that_this_version_cannot_read_spoils_no_other(
    admin_client: Client, ann: User
) -> None:
    talks.rich(ann)
    rows = ConversationMessage.objects.filter(role="assistant")
    broken = {"steps": '[{"items": 7}]', "meta": "[1]", "parts": "[" * 100_000, "format": 99}
    for (column, value), row in zip(broken.items(), rows, strict=False):
        ConversationMessage.objects.filter(pk=row.pk).update(**{column: value})
    shown = bubbles(page_of(admin_client, conversation_page("rich")))
    unreadable = [text for _, text in shown if "This version cannot read the message" in text]
    assert len(unreadable) == 4
    assert "Your **blue chair** was in stock" in unreadable[0]
    assert "I ordered it *last week*." in shown[1][1]


def test_a_text_that_no_page_could_hold_is_cut_and_says_so(admin_client: Client) -> None:
    text = f"{'x' * transcript.MAX_ADDRESS}{'y' * 100_000}THE END"
    talk("one", prompt=text, answer=text)
    page = page_of(admin_client, conversation_page("one"))
    assert page.count("more characters are in the download.") == 2
    assert "THE END" not in page


def test_hostile_texts_names_and_files_are_shown_and_do_nothing(
    admin_client: Client, ann: User
) -> None:
    talks.hostile(ann)
    page = page_of(admin_client, conversation_page("hostile"))
    main = page[page.index("<main") : page.index("</main>")]
    assert main.count("<article") == 2
    for name, attributes in elements(main):
        assert name not in ("script", "iframe", "style", "svg", "object", "embed", "form")
        assert not any(each.startswith("on") or each == "style" for each in attributes), name
        address = attributes.get("href") or attributes.get("src")
        if name == "img":
            assert str(address).startswith(f"{CONVERSATIONS}hostile/attachments/")
        elif address:
            assert re.match(r"https://(shop|tracker)\.example|/admin/|#|\?", address)
    assert page.count("alert(&#x27;script&#x27;)") > 5


# Files.


def attachment_of(conversation_id: str, public_id: Any) -> str:
    return reverse("admin:agent_memory_conversation_attachment", args=[conversation_id, public_id])


def test_a_picture_is_a_thumbnail_and_another_file_a_chip_that_downloads_it(
    admin_client: Client, ann: User
) -> None:
    talks.rich(ann)
    page = page_of(admin_client, conversation_page("rich"))
    picture, document = ConversationAttachment.objects.order_by("media_type").reverse()
    url = attachment_of("rich", picture.public_id)
    assert f'<img src="{url}" alt="chair.png" loading="lazy">' in page
    response = admin_client.get(url)
    assert response["Content-Type"] == "image/png"
    assert response.getvalue() == talks.picture(240, 160)  # type: ignore[attr-defined]  # streamed
    url = attachment_of("rich", document.public_id)
    assert f'<a href="{url}"><bdi>invoice 17.pdf</bdi></a>' in page
    response = admin_client.get(url)
    assert response["Content-Disposition"] == 'attachment; filename="invoice 17.pdf"'
    assert "sandbox" in response["Content-Security-Policy"]


def test_a_file_that_is_elsewhere_is_named_and_neither_linked_nor_loaded(
    admin_client: Client, ann: User
) -> None:
    talks.rich(ann)
    page = page_of(admin_client, conversation_page("rich"))
    assert "<code>https://elsewhere.example/chair.png</code>" in page
    assert '"https://elsewhere.example' not in page


def test_a_picture_too_large_for_a_thumbnail_is_a_chip(
    admin_client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MAX_THUMBNAIL", 10)
    talks.rich(ann)
    page = page_of(admin_client, conversation_page("rich"))
    assert '<img src="/admin/agent_memory' not in page
    assert "<bdi>chair.png</bdi></a>" in page


def test_a_file_is_given_under_its_own_conversation_alone(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    talk("other")
    for row in ConversationAttachment.objects.all():
        assert admin_client.get(attachment_of("rich", row.public_id)).status_code == 200
        assert admin_client.get(attachment_of("other", row.public_id)).status_code == 404
    assert admin_client.get(attachment_of("rich", "no such")).status_code == 404


# Who takes part.


def test_each_message_names_who_spoke(admin_client: Client, ann: User) -> None:
    talk("one", ann, agent="shop.Clerk")
    talk("one", Team.objects.create(name="Red"), agent="shop.Coach")
    talk("one", Participant("auth.user", "999"))
    talk("one", None)
    page = page_of(admin_client, conversation_page("one"))
    headings = re.findall(r"<h3[^>]*>(.*?)</h3>", page)
    names = [re.sub(r"<[^>]*>", "", heading) for heading in headings]
    team = Team.objects.get()
    assert names[:4] == ["ann", "Clerk", str(team), "Coach"]
    assert names[4:] == ["auth.user 999", "Agent", "Somebody", "Agent"]
