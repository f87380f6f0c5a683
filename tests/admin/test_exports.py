"""Downloads of a whole conversation: complete, harmless, and never whole in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from agent_memory.admin import exports
from agent_memory.admin.exports import as_json
from agent_memory.admin.prose import Prose
from agent_memory.approvals import Edit
from agent_memory.messages import Message, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.stores import codec
from tests.admin import talks
from tests.admin.saying import store, talk

pytestmark = pytest.mark.django_db

FORMS = ["json", "markdown"]


def address(form: str, conversation_id: str) -> str:
    return reverse(f"admin:agent_memory_conversation_{form}", args=[quote(conversation_id)])


def downloaded(client: Client, form: str, conversation_id: str) -> str:
    response: Any = client.get(address(form, conversation_id))
    assert response.status_code == 200
    assert response.streaming
    return str(response.getvalue().decode())


def conversation(conversation_id: str) -> Conversation:
    return Conversation.objects.get(pk=conversation_id)


# JSON.


def test_json_has_all_that_is_stored_of_a_conversation(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    store.decide("rich", {"call_4": Edit({"order": "A-17"})}, decided_by=ann, note="Fine.")
    told = json.loads(downloaded(admin_client, "json", "rich"))
    assert (told["format"], told["version"]) == ("agent_memory.conversation", 1)
    assert (told["id"], told["title"]) == ("rich", "Where is my blue chair?")
    assert told["participant"] == {"type": "auth.user", "key": str(ann.pk)}
    assert told["usage"]["input_tokens"] == 6000
    page = store.paginate_conversation_messages("rich", per_page=100)
    stored = list(reversed(page.items))
    assert [each["position"] for each in told["messages"]] == [each.position for each in stored]
    for each, message in zip(told["messages"], stored, strict=True):
        (parts,) = codec.decode_parts([(json.dumps(each["parts"]), "")])
        steps = tuple(map(codec.step_value, each["steps"]))
        assert (parts, steps) == (message.parts, message.steps)
        assert (each["role"], each["status"]) == (message.role, message.status)
        assert (each["content"], each["meta"]) == (message.content, message.meta)
    (approval,) = told["messages"][-1]["approvals"]
    assert approval["decided_by"] == told["participant"]
    assert (approval["status"], approval["note"]) == ("approved", "Fine.")
    assert approval["arguments_used"] == {"order": "A-17"}
    files = [part for part in told["messages"][3]["parts"] if part["type"] == "attachment"]
    assert [(file["file_name"], file["media_type"]) for file in files] == [
        ("chair.png", "image/png"),
        ("invoice 17.pdf", "application/pdf"),
    ]
    assert all(file["id"] and len(file["sha256"]) == 64 for file in files)


@pytest.mark.parametrize(
    "stored", ["no JSON", "[" * 100_000, f'{{"huge": {"9" * 5000}}}', '{"not": NaN}', "[1]"]
)
def test_json_stays_json_whatever_a_row_holds(admin_client: Client, stored: str) -> None:
    talk("one")
    ConversationMessage.objects.update(meta=stored)
    Conversation.objects.update(metadata=stored)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    told = json.loads(downloaded(admin_client, "json", "one"), parse_constant=refuse)
    assert len(told["messages"]) == 2
    assert told["metadata"] in (stored, {"not": "NaN"}, [1])


def test_json_holds_what_no_text_can(admin_client: Client, ann: User) -> None:
    talks.hostile(ann)
    text = downloaded(admin_client, "json", "hostile")
    assert text.isascii()
    user, answer = json.loads(text)["messages"]
    assert user["parts"][0]["text"] == f"{talks.HOSTILE}\ud800"
    assert answer["steps"][0]["items"][2]["data"] == {"\udfff": talks.HOSTILE}


def test_an_empty_conversation_is_json_too(admin_client: Client) -> None:
    store.create("empty")
    assert json.loads(downloaded(admin_client, "json", "empty"))["messages"] == []


# Markdown.


def test_markdown_reads_as_the_conversation_did(admin_client: Client, ann: User) -> None:
    talks.rich(ann)
    text = downloaded(admin_client, "markdown", "rich")
    assert text.startswith("# Where is my blue chair?\n\n- Id: `rich`\n- Participant: user: ann\n")
    headings = re.findall(r"^## (.*?) \u00b7 \d{4}-", text, re.M)
    assert headings == ["system", *["user: ann", "shop.agents.Clerk"] * 5]
    for said in (
        talks.MARKDOWN,
        "\nWhere is my blue chair?\n\nI ordered it   *last week*.\n",
        "> **Reasoning**\n>\n> The person asks",
        '**Tool call** `look_up_order` (done)\n\n```json\n{\n  "order": "A-17",',
        "**Result**\n\n```\nThe courier did not answer.\n```",
        "**Call that the provider ran** `web_search`",
        "*This turn failed \u00b7 ProviderUnavailable*",
        '**Tool call** `send_mail` (interrupted: it may or may not have run)\n\n```\n{"to": "cour',
        "**Refusal**\n\nI cannot give addresses of people.",
        "*This turn waits for a person*",
        "**File** `chair.png` (image/png, ",
        "**File** `far.png` (`https://elsewhere.example/chair.png`)",
    ):
        assert said in text, said


def test_no_value_closes_the_fence_around_it(admin_client: Client) -> None:
    value = "```\n# Not a heading\n`````\n"
    call = ToolCall(id="1", name="a`b", raw_arguments=value, result=ToolResult(value=value))
    store.append("one", Turn(user=Message("user", "Hello"), steps=(Step(items=(call,)),)))
    text = downloaded(admin_client, "markdown", "one")
    assert text.count(f"\n``````\n{value}\n``````\n") == 2
    assert "`` a`b ``" in text


def test_a_message_that_cannot_be_read_is_told_by_its_text(admin_client: Client) -> None:
    talk("one", answer="Blue.")
    ConversationMessage.objects.filter(role="assistant").update(steps='[{"items": 7}]')
    text = downloaded(admin_client, "markdown", "one")
    assert "cannot be read by this version" in text
    assert text.endswith("\nBlue.\n")


def test_words_and_times_are_those_of_the_request_and_not_of_whoever_sends_it(ann: User) -> None:
    talks.rich(ann)
    with timezone.override("Asia/Tokyo"), translation.override("de"):
        prose = Prose(conversation("rich"))
    with timezone.override("UTC"):
        assert "+09:00" in "".join(prose)


# Both.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("conversation_id", "title"),
    [
        ("a/../../b", '"; filename="evil.exe'),
        ("c" * 255, "x" * 255),
        ("\u00e9\U0001f600", "../../etc/passwd"),
        ("line\nbreak", "\u00dcbergabe\r\nSet-Cookie: a=b"),
        ("con", "\u202egnp.exe"),
        ("...", "   "),
    ],
)
def test_a_download_has_a_name_that_any_system_takes(
    admin_client: Client, form: str, conversation_id: str, title: str
) -> None:
    talk(conversation_id, title=title)
    response = admin_client.get(address(form, conversation_id))
    assert response.status_code == 200
    disposition = response["Content-Disposition"]
    found = re.fullmatch(
        r"""attachment; filename(?:="([\w-]+\.\w+)"|\*=utf-8''([\w%-]+\.\w+))""", disposition
    )
    assert found, disposition
    assert len(disposition) < 350
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
    assert b"".join(response.streaming_content)  # type: ignore[attr-defined]  # streamed


@pytest.mark.parametrize("form", FORMS)
def test_a_download_reads_page_by_page_and_sends_what_it_has_read(
    ann: User, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "ROWS", 4)
    talks.long(ann, 6)
    row = conversation("long")
    pieces: Iterable[str] = as_json(row) if form == "json" else Prose(row)
    reading = iter(pieces)
    with CaptureQueriesContext(connection) as captured:
        for piece in reading:
            if "Question 0?" in piece:
                break
        of_one_page = len(captured)
        assert of_one_page <= 4
        assert len(_pages(captured)) == 1
        list(reading)
        assert len(_pages(captured)) == 3


def _pages(captured: CaptureQueriesContext) -> list[str]:
    table = connection.ops.quote_name(ConversationMessage._meta.db_table)
    made = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in made if f"FROM {table} WHERE" in sql]


@pytest.mark.parametrize("form", FORMS)
def test_a_download_ends_where_the_conversation_ended_when_it_began(ann: User, form: str) -> None:
    talks.long(ann, 2)
    row = conversation("long")
    pieces = as_json(row) if form == "json" else Prose(row)
    talk("long", ann, prompt="Too late")
    text = "".join(pieces)
    assert "Question 1?" in text
    assert "Too late" not in text


@pytest.mark.parametrize("form", FORMS)
def test_a_download_is_streamed_under_asgi_too(form: str, admin_user: User) -> None:
    talk("one", admin_user, answer="Blue.")

    async def parts() -> list[bytes]:
        client = AsyncClient()
        await client.aforce_login(admin_user)
        response: Any = await client.get(address(form, "one"))
        assert response.is_async
        return [part async for part in response.streaming_content]

    sent = async_to_sync(parts)()
    assert len(sent) > 2
    assert "Blue." in b"".join(sent).decode()


def test_a_text_of_the_database_is_what_is_downloaded(admin_client: Client) -> None:
    step = Step(items=(TextPart(text="caf\u00e9"),))
    store.append("one", Turn(user=Message("user", "\u202eabc"), steps=(step,)))
    text = downloaded(admin_client, "markdown", "one")
    assert "caf\u00e9" in text
    assert "\u202eabc" in text
