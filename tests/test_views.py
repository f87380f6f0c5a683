"""The view of attachments: who gets what, and that nothing of it runs in a browser."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.urls import include, path, reverse

from agent_memory import load_image
from agent_memory.messages import DocumentPart, ImagePart
from agent_memory.models import Conversation, ConversationAttachment
from agent_memory.records import Heading, StoredAttachment
from agent_memory.stores import conversation_store
from agent_memory.stores.database import files
from agent_memory.testing.contract.attachments import turn_with
from agent_memory.views import AttachmentView
from tests.files import GIF, HTML, JPEG, PDF, PNG, SVG, WEBP
from tests.storages import BACKENDS, attachments_in

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

CHART = ImagePart(data=PNG, media_type="image/png", file_name="chart.png")
LARGE = DocumentPart(data=bytes(range(256)) * 4000, media_type="text/plain")


class StaffAttachmentView(LoginRequiredMixin, AttachmentView):
    login_url = "/login/"

    def may_see(self, request: HttpRequest, conversation: Conversation) -> bool:
        return request.user.is_staff or super().may_see(request, conversation)


urlpatterns = [
    path("agent-memory/", include("agent_memory.urls")),
    path("staff/<str:attachment_id>/", StaffAttachmentView.as_view(), name="staff"),
]


@pytest.fixture
def owner() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def own(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def stored(owner: Any, part: ImagePart | DocumentPart, name: str = "c") -> StoredAttachment:
    participant = conversation_store.participant_of(owner)
    conversation_store.append(Heading(name, participant), turn_with(part))
    _, asked = conversation_store.paginate_conversation_messages(name, per_page=2)
    (attachment,) = asked.attachments
    return attachment


def address(attachment: StoredAttachment) -> str:
    return reverse("agent_memory:attachment", args=[attachment.id])


def test_the_owner_gets_the_bytes(own, owner):
    attachment = stored(owner, CHART)
    response = own.get(address(attachment))
    assert response.status_code == 200
    assert response.getvalue() == PNG
    assert response["Content-Type"] == "image/png"
    assert response["Content-Length"] == str(len(PNG))
    assert response["Content-Disposition"] == 'inline; filename="chart.png"'


def test_nobody_else_is_told_that_there_is_such_a_file(client, owner):
    attachment = stored(owner, CHART)
    orphaned = stored(None, CHART, "of nobody")
    namesake = stored(Group.objects.create(pk=owner.pk, name="a"), CHART, "of a group")
    for each in (attachment, orphaned, namesake):
        assert client.get(address(each)).status_code == 404
    client.force_login(owner)
    for each in (orphaned, namesake):
        assert client.get(address(each)).status_code == 404
    client.force_login(User.objects.create_superuser("root"))
    missing = reverse("agent_memory:attachment", args=["unknown"])
    answers = [client.get(each) for each in (address(attachment), missing)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("data", [PNG, JPEG, GIF, WEBP], ids=["png", "jpeg", "gif", "webp"])
def test_images_are_shown(own, owner, data):
    response = own.get(address(stored(owner, load_image(data))))
    assert response["Content-Type"].startswith("image/")
    assert "Content-Disposition" not in response


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (HTML, "text/html"),
        (SVG, "image/svg+xml"),
        (b"<x/>", "application/xml"),
        (b"alert(1)", "text/javascript"),
        (PDF, "application/pdf"),
        (b"a", "text/plain"),
        (HTML, "image/png; charset=utf-7"),
        (HTML, "image/png\r\nX-Evil: 1"),
        (HTML, ""),
    ],
)
def test_all_else_is_downloaded_under_a_type_that_no_browser_runs(own, owner, data, media_type):
    part = DocumentPart(data=data, media_type=media_type, file_name="page.html")
    response = own.get(address(stored(owner, part)))
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="page.html"'
    assert response.getvalue() == data


@pytest.mark.parametrize("part", [CHART, DocumentPart(data=HTML, media_type="text/html")])
def test_no_content_is_guessed_and_no_script_runs(own, owner, part):
    response = own.get(address(stored(owner, part)))
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "attachment"),
        ('a "quoted".txt', r'attachment; filename="a \"quoted\".txt"'),
        ("bücher.txt", "attachment; filename*=utf-8''b%C3%BCcher.txt"),
        ("../../etc/passwd", 'attachment; filename="passwd"'),
        ("a\r\nX-Evil: 1", "attachment; filename*=utf-8''a%EF%BF%BD%EF%BF%BDX-Evil%3A%201"),
        ("\ud800", "attachment; filename*=utf-8''%EF%BF%BD"),
    ],
    ids=ascii,
)
def test_names_of_any_kind_are_told(own, owner, name, told):
    part = DocumentPart(data=b"a", media_type="text/plain", file_name=name)
    assert own.get(address(stored(owner, part)))["Content-Disposition"] == told


def test_a_browser_keeps_the_bytes_for_itself_and_asks_whether_they_are_right(own, owner):
    url = address(stored(owner, CHART))
    response = own.get(url)
    tag = f'"{hashlib.sha256(PNG).hexdigest()}"'
    assert response["ETag"] == tag
    assert {*response["Cache-Control"].split(", ")} == {"private", "no-cache"}
    again = own.get(url, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == tag
    own.logout()
    assert own.get(url, headers={"If-None-Match": tag}).status_code == 404


def test_head_tells_of_the_file_and_reads_none_of_it(own, owner, monkeypatch):
    url = address(stored(owner, CHART))
    sent = own.get(url)
    monkeypatch.setattr("agent_memory.views.pieces", lambda row: pytest.fail("read"))
    response = own.head(url)
    assert response.status_code == 200
    assert {**response.headers} == {**sent.headers}
    assert own.post(url).status_code == 405


def test_a_large_file_is_sent_in_pieces(own, owner, monkeypatch):
    monkeypatch.setattr(files, "PIECE", 100_000)
    response = own.get(address(stored(owner, LARGE)))
    pieces = [*response.streaming_content]
    assert [len(piece) for piece in pieces] == [100_000] * 10 + [24_000]
    assert b"".join(pieces) == LARGE.data


@pytest.mark.django_db(transaction=True)
def test_it_works_under_asgi(owner, monkeypatch):
    monkeypatch.setattr(files, "PIECE", 100_000)
    attachment = stored(owner, LARGE)

    async def get() -> tuple[Any, list[bytes]]:
        client = AsyncClient()
        await client.aforce_login(owner)
        response = await client.get(address(attachment))
        return response, [piece async for piece in response.streaming_content]

    response, pieces = async_to_sync(get)()
    assert response.status_code == 200
    assert len(pieces) == 11
    assert b"".join(pieces) == LARGE.data


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_in_a_storage_is_sent_and_one_that_is_gone_is_not_found(
    own, owner, backend, settings, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(files, "PIECE", 100_000)
    with attachments_in(backend, tmp_path, settings) as storage:
        url = address(stored(owner, LARGE))
    assert b"".join(own.get(url).streaming_content) == LARGE.data
    storage.delete(ConversationAttachment.objects.get().stored_name)
    assert own.get(url).status_code == 404
    assert "is gone" in caplog.text


def test_a_project_says_who_may_see_what(client, owner):
    attachment = stored(owner, CHART)
    url = reverse("staff", args=[attachment.id])
    assert client.get(url)["Location"] == f"/login/?next={url}"
    client.force_login(User.objects.create_user("eve"))
    assert client.get(url).status_code == 404
    client.force_login(User.objects.create_user("grace", is_staff=True))
    assert client.get(url).getvalue() == PNG


def test_a_file_of_a_turn_that_never_ended_is_not_sent(own, owner):
    attachment = stored(owner, CHART)
    Conversation.objects.update(opened_at=None)
    assert own.get(address(attachment)).status_code == 404
