"""Conversations in files: what is in them, what they cost, and what they survive."""

from __future__ import annotations

import base64
import errno
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_memory.approvals import Approve
from agent_memory.exceptions import ConversationBusy, InvalidStore, UnsupportedFormat
from agent_memory.messages import DocumentPart, ImagePart, Message, Step, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading, Once
from agent_memory.signals import conversation_cleared
from agent_memory.stores import build_store
from agent_memory.stores.file import FileConversationStore
from agent_memory.stores.file import store as module
from agent_memory.stores.file.names import file_name
from agent_memory.testing.contract.base import messages_of, plain_turn, tool_turn, walk
from agent_memory.testing.contract.fidelity import AWKWARD_IDS, every_part
from agent_memory.testing.contract.journals import entries_of
from agent_memory.testing.contract.pausing import asking_turn

ROOT = Path(__file__).parent.parent.parent
NOBODY = 65534
ADA, BOB = Participant("auth.user", "ada"), Participant("auth.user", "bob")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "conversations"


@pytest.fixture
def store(folder: Path) -> FileConversationStore:
    return FileConversationStore(folder=folder)


def again(store: FileConversationStore) -> FileConversationStore:
    """Return a store that has read nothing yet, as after a restart."""
    return FileConversationStore(folder=store.folder)


def path_of(store: FileConversationStore, conversation_id: str) -> Path:
    return store.folder / file_name(conversation_id)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@contextmanager
def somebody_else_than_root(place: str) -> Iterator[None]:
    """Have file permissions mean something, in a folder that is theirs."""
    root = os.geteuid() == 0
    if root:
        os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the bytes that are read and written of files."""
    moved = [0, 0]
    opened = Path.open

    def tell(path: Path, *args: Any, **kwargs: Any) -> Any:
        file = opened(path, *args, **kwargs)
        read, write = file.read, file.write

        class Counted:
            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *error: object) -> None:
                file.close()

            def read(self, *size: int) -> bytes:
                data = read(*size)
                moved[0] += len(data)
                return data

            def write(self, data: Any) -> int:
                moved[1] += len(data)
                return write(data)

        return Counted()

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", tell)
        yield moved


# What is in a file.


def test_a_file_is_a_header_and_a_line_for_each_turn_behind_which_stands_what_is_known(store):
    heading = Heading("user-42", ADA, "coach", "A title", "draft")
    store.append(heading, plain_turn("Hello"))
    store.append(heading, plain_turn("And now?"))
    header, *lines = lines_of(store.folder / "user-42.jsonl")
    assert header == {"format": "agent_memory conversation", "version": 2, "id": "user-42"}
    turns = [line["turn"] for line in lines if "turn" in line]
    assert [turn["user"]["content"] for turn in turns] == [
        [{"type": "text", "text": "Hello"}],
        [{"type": "text", "text": "And now?"}],
    ]
    state = lines[-1]["state"]
    assert (state["title"], state["participant"], state["turns"]) == (
        *("A title", ["auth.user", "ada"], 2),
    )


def test_attachments_are_in_the_file_as_base64_and_come_back_as_bytes(store):
    data = bytes(range(256))
    parts = (
        TextPart(text="See:"),
        ImagePart(data=data, media_type="image/png", provider_options={"detail": "low"}),
        DocumentPart(data=b"%PDF", media_type="application/pdf", file_name="a\0\ud800.pdf"),
    )
    turn = Turn(user=Message("user", parts), steps=plain_turn().steps)
    leading = (Message("system", parts),)
    store.create("one", leading=leading)
    store.append("one", turn)
    assert base64.b64encode(data).decode() in path_of(store, "one").read_text()
    assert repr(again(store).load("one")) == repr((*leading, *turn.messages))
    loaded = [part.data for part in again(store).load("one")[1].content[1:]]
    assert loaded == [data, b"%PDF"]
    _, said, *_ = again(store).paginate_conversation_messages("one")
    assert said == store.paginate_conversation_messages("one").items[1]
    assert again(store).read_attachment("one", said.parts[1].id) == data


def test_numbers_that_json_does_not_know_come_back(store):
    step = Step(items=tool_turn().steps[0].items[:1])
    options = {"nan": float("nan"), "infinity": float("-inf"), "huge": 10**4000}
    part = TextPart(text="\ud800\0", provider_options=options)
    store.append("one", Turn(user=Message("user", (part,)), steps=(step,)))
    (message, _) = again(store).load("one")
    assert repr(message.content) == repr((part,))


def test_a_restart_forgets_nothing(store):
    heading = Heading("one", ADA, "coach", "A title", "draft")
    store.create("one", participant=ADA, leading=[Message("system", "Be brief.")])
    store.append(heading, every_part())
    once = Once.of("key", Message("user", "Hello"))
    reservation = store.reserve("one", once=once)
    store.append(heading, plain_turn("Hello"), reservation=reservation)
    store.append(heading, asking_turn())
    store.decide("one", {"call-0": Approve()}, decided_by=BOB, note="Fine.")
    running = store.reserve("one", resume=True)
    other = again(store)
    assert other.get("one") == store.get("one")
    assert other.load("one") == store.load("one")
    assert [*walk(other.paginate_conversation_messages, "one", per_page=2)] == [
        *walk(store.paginate_conversation_messages, "one", per_page=2)
    ]
    assert other.list_conversations(ADA) == store.list_conversations(ADA)
    assert other.latest_conversation_id(ADA, "coach") == "one"
    assert other.pending_approvals_for("one") == store.pending_approvals_for("one")
    answered = other.reserve("one", once=once).answered
    assert answered is not None
    assert answered.turn.user.text == "Hello"
    with pytest.raises(ConversationBusy):
        other.reserve("one", resume=True)
    assert other.renew(running, 0)
    assert other.reserve("one", resume=True).paused == running.paused


# Its name.


def test_an_id_is_the_name_of_its_file_where_that_is_safe(store):
    for plain in ("user-42", "report_review", "0199c1b2-7b1e-7c3a-9d5e-1f2a3b4c5d6e", "7"):
        assert file_name(plain) == f"{plain}.jsonl"
    hashed = file_name("User 42/../x")
    assert hashed.startswith("user-42-x.")
    assert len(hashed) == len("user-42-x..jsonl") + 64


HOSTILE = (
    *("..", ".", "/", "/etc/passwd", "../../a", "a/b", "a\\b", "C:\\a", "~", "~root", "-rf", "*"),
    *("con", "nul", "com1", ".locks", ".locks/00.lock", "a.jsonl", "a.jsonl.new", "a:b", "a\n"),
    *("x" * 255, "\U0001f600" * 255, "a" * 100, "a" * 101, "%2e%2e%2f", "\u202e", "|", "?"),
    *("user-42", "User-42", "user-42.", "user-42 ", "a", "A", "\u00e4", "a\u0308", "\uff41"),
    *AWKWARD_IDS,
)


def test_no_two_ids_share_a_file_on_any_file_system_and_none_lies_outside(store):
    ids = dict.fromkeys(HOSTILE)
    names = {conversation_id: file_name(conversation_id) for conversation_id in ids}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert len({unicodedata.normalize(form, n).casefold() for n in names.values()}) == len(ids)
    for number, conversation_id in enumerate(ids):
        name = names[conversation_id]
        assert name == name.lower()
        assert name.isascii()
        assert len(name) < 200
        store.append(conversation_id, plain_turn(f"{number}"))
        assert store.load(conversation_id) == plain_turn(f"{number}").messages
    assert {*os.listdir(store.folder)} == {*names.values(), ".locks"}
    assert [*store.folder.parent.iterdir()] == [store.folder]
    found = walk(again(store).list_conversations, None, per_page=1000)
    assert {stored.id for page in found for stored in page} == {*ids}


def test_a_file_of_another_name_is_no_conversation(store):
    store.append("one", plain_turn())
    path = path_of(store, "one")
    path.with_name("one (copy).jsonl").write_bytes(path.read_bytes())
    path.with_name("two.jsonl").write_bytes(path.read_bytes())
    assert [stored.id for stored in store.list_conversations(None)] == ["one"]
    with pytest.raises(UnsupportedFormat, match="holds the conversation 'one', not 'two'"):
        store.load("two")


# What a turn costs.


def test_an_append_writes_and_reads_no_more_when_the_conversation_is_long(store, monkeypatch):
    def costs() -> tuple[int, int, int]:
        before = path_of(store, "one").stat().st_size
        with counting(monkeypatch) as moved:
            reservation = store.reserve("one")
            store.load("one", keep_last_turns=1, reservation=reservation)
            store.append("one", plain_turn(), reservation=reservation)
        return (path_of(store, "one").stat().st_size - before, *moved)

    store.append("one", plain_turn())
    short = costs()
    for _ in range(200):
        store.append("one", plain_turn("x" * 1000))
    long = costs()
    assert path_of(store, "one").stat().st_size > 100 * short[0]
    assert short[0] == short[2] > 0
    for few, many in zip(short, long, strict=True):
        assert abs(many - few) < 50  # a number more here and there


def test_what_another_process_added_is_read_and_nothing_else(store, monkeypatch):
    for _ in range(20):
        store.append("one", plain_turn("x" * 1000))
    other = again(store)
    other.load("one")
    size = path_of(store, "one").stat().st_size
    store.append("one", plain_turn("new"))
    added = path_of(store, "one").stat().st_size - size
    with counting(monkeypatch) as moved:
        assert other.load("one", keep_last_turns=1) == plain_turn("new").messages
    assert added <= moved[0] < added + 1000


def test_a_list_reads_no_more_of_a_long_conversation(store, monkeypatch):
    turn = plain_turn("x" * 1000)
    for _ in range(100):
        store.append(Heading("one", ADA, "coach"), turn)
    with counting(monkeypatch) as moved:
        assert len(again(store).list_conversations(ADA)) == 1
        assert again(store).latest_conversation_id(ADA, "coach") == "one"
    assert moved[0] < 20_000


def test_the_last_state_is_found_behind_whatever_was_not_finished(store):
    store.append(Heading("one", ADA, "coach"), plain_turn())
    for rest in (b"", b"x" * 100_000, b"\n" * 5000, b'{"turn":' + b"1" * 50_000 + b"}\n" * 2):
        with path_of(store, "one").open("ab") as file:
            file.write(rest)
        assert again(store).latest_conversation_id(ADA, "coach") == "one"


def test_what_a_process_keeps_is_bounded(store, monkeypatch):
    monkeypatch.setattr(module, "CACHED", 3)
    for number in range(10):
        store.append(f"{number}", plain_turn())
    assert [*store._files] == [*store._transcripts] == ["7", "8", "9"]
    monkeypatch.setattr(module, "CACHED_BYTES", 10)
    store.load("8")
    assert [*store._files] == [*store._transcripts] == ["8"]
    assert store.load("0") == plain_turn().messages


def test_locks_do_not_grow_with_the_conversations(store, monkeypatch):
    monkeypatch.setattr(module, "LOCKS", 4)
    for number in range(30):
        store.append(f"{number}", plain_turn())
        store.clear(f"{number}")
    assert [*os.listdir(store.folder)] == [".locks"]
    assert len(os.listdir(store.folder / ".locks")) == 4


# What was not finished.


def test_a_torn_write_is_dropped_wherever_it_broke_off(store):
    store.append("one", plain_turn("before"))
    path = path_of(store, "one")
    size = path.stat().st_size
    store.append("one", tool_turn())
    whole = path.read_bytes()
    for end in {*range(size, len(whole), 9), len(whole) - 1, whole.rfind(b"\n", 0, -1) + 1}:
        path.write_bytes(whole[:end])
        assert again(store).load("one") == plain_turn("before").messages
        assert path.read_bytes() == whole[:end]
    after = again(store)
    after.append("one", plain_turn("after"))
    assert path.read_bytes().startswith(whole[:size])
    assert len(lines_of(path)) == len(whole[:size].splitlines()) + 2
    assert again(store).load("one") == messages_of([plain_turn("before"), plain_turn("after")])


def test_a_file_that_was_replaced_shrunk_or_removed_is_read_again(store):
    path = path_of(store, "one")
    store.append("one", plain_turn("one"))
    first = path.read_bytes()
    store.append("one", plain_turn("two"))
    path.write_bytes(first)
    assert store.load("one") == plain_turn("one").messages
    other = again(store)
    other.clear("one")
    assert store.load("one") == ()
    for number in range(5):
        other.append("one", plain_turn(f"{number} of another"))
    assert store.load("one", keep_last_turns=1) == plain_turn("4 of another").messages
    assert len(store.load("one")) == 10
    path.unlink()
    assert store.load("one") == ()
    assert store.append("one", plain_turn()).created


def test_a_file_that_a_person_has_formatted_is_read(store):
    store.append("one", plain_turn())
    path = path_of(store, "one")
    header, *lines = lines_of(path)
    path.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in (header, *lines)))
    assert again(store).load("one") == plain_turn().messages


def test_nothing_that_was_dropped_stays_in_the_file(store):
    store.append("one", plain_turn("kept"))
    store.append("one", asking_turn("secret", ran=False))
    assert "secret" in path_of(store, "one").read_text()
    store.settle("one", None, reservation=store.reserve("one", resume=True))
    assert "secret" not in path_of(store, "one").read_text()
    assert again(store).load("one") == plain_turn("kept").messages


def test_nothing_is_left_of_a_participant_who_was_made_nobody(store):
    for conversation_id in ("one", "two"):
        store.append(Heading(conversation_id, ADA, "coach"), asking_turn(ran=False))
        store.decide(conversation_id, {"*": Approve()}, decided_by=BOB)
    store.append(Heading("three", BOB, "coach"), plain_turn())
    untouched = path_of(store, "three").read_bytes()
    again(store).anonymise_participant(ADA)
    for conversation_id in ("one", "two"):
        assert '"ada"' not in path_of(store, conversation_id).read_text()
        assert '"bob"' in path_of(store, conversation_id).read_text()
        assert again(store).get(conversation_id).participant is None
        assert again(store).reserve(conversation_id, resume=True).paused is not None
    assert path_of(store, "three").read_bytes() == untouched
    again(store).anonymise_participant(BOB)
    assert "bob" not in "".join(path.read_text() for path in store.folder.glob("*.jsonl"))


# Other files.


def test_another_version_is_refused_with_what_to_do_and_can_be_cleared(store):
    told = []

    def receiver(sender: type, conversation_id: str, **kwargs: Any) -> None:
        told.append(conversation_id)

    store.append("one", plain_turn())
    path = path_of(store, "one")
    for version in (1, 3, "2", None):
        old = path.read_text().replace('"version":2', f'"version":{json.dumps(version)}')
        path.write_text(old)
        for refused in (
            lambda: again(store).load("one"),
            lambda: again(store).append("one", plain_turn()),
            lambda: again(store).reserve("one", create=True),
            lambda: again(store).get("one"),
        ):
            with pytest.raises(UnsupportedFormat, match=r"version .* store\.clear\('one'\)"):
                refused()
        assert path.read_text() == old
        assert len(store.list_conversations(None)) == 0
        conversation_cleared.connect(receiver)
        store.clear("one")
        conversation_cleared.disconnect(receiver)
        assert told.pop() == "one"
        store.append("one", plain_turn())
        assert again(store).load("one") == plain_turn().messages


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"Hello",
        b"{}\n",
        b"[]\n",
        b'{"format":"other"}\n',
        b"\0\xff\n" * 999,
        b"{" * 9999,
    ],
)
def test_a_file_that_is_no_conversation_is_left_as_it_is_until_it_is_cleared(store, content):
    store.append("two", plain_turn())
    path = path_of(store, "one")
    path.write_bytes(content)
    with pytest.raises(UnsupportedFormat, match="is no conversation file, and is left as it is"):
        store.load("one")
    with pytest.raises(UnsupportedFormat):
        store.append("one", plain_turn())
    with pytest.raises(UnsupportedFormat):
        store.create("one")
    assert path.read_bytes() == content
    assert [stored.id for stored in store.list_conversations(None)] == ["two"]
    store.clear("one")
    store.append("one", plain_turn())


@pytest.mark.parametrize("wrong", ["nonsense", '{"turn":{}}', '{"turn":7}', '{"note":{"step":1}}'])
def test_a_line_that_cannot_be_read_is_told_and_nothing_is_dropped(store, wrong):
    for prompt in ("1", "2", "3"):
        store.append("one", plain_turn(prompt))
    path = path_of(store, "one")
    lines = path.read_text().splitlines()
    lines[3] = wrong
    path.write_text("\n".join(lines) + "\n")
    damaged = path.read_bytes()
    for _ in range(2):
        with pytest.raises(UnsupportedFormat, match="damaged"):
            store.load("one")
        with pytest.raises(UnsupportedFormat, match="damaged"):
            again(store).append("one", plain_turn())
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("state", ["7", "{", "null", '{"opened":"x","active":"y"}', '{"spoke":7}'])
def test_a_state_that_cannot_be_read_is_told_by_its_conversation_and_by_no_list(store, state):
    store.append(Heading("two", ADA, "coach"), plain_turn())
    store.append(Heading("one", ADA, "coach"), plain_turn())
    with path_of(store, "one").open("a") as file:
        file.write(f'{{"state":{state}}}\n')
    assert [stored.id for stored in again(store).list_conversations(ADA)] == ["two"]
    assert again(store).latest_conversation_id(ADA, "coach") == "two"
    with pytest.raises(UnsupportedFormat, match="damaged"):
        again(store).load("one")


def test_lines_and_fields_of_a_later_version_are_passed_over(store):
    store.append("one", plain_turn())
    path = path_of(store, "one")
    text = path.read_text().replace('{"turn":{', '{"later":{}}\n{"turn":{"later":1,')
    path.write_text(text.replace('{"state":{', '{"state":{"later":1,'))
    assert again(store).load("one") == plain_turn().messages


# The file system.


def test_the_folder_is_made_when_it_is_needed_and_is_nobody_elses(store):
    assert not store.folder.exists()
    assert len(store.list_conversations(None)) == 0
    assert not store.folder.exists()
    store.append("one", plain_turn())
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path_of(store, "one").stat().st_mode) == 0o600


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = FileConversationStore(folder="conversations")
    monkeypatch.chdir("/")
    store.append("one", plain_turn())
    assert (tmp_path / "conversations" / "one.jsonl").exists()


def test_a_store_without_a_folder_is_refused(folder):
    path = "agent_memory.stores.file.FileConversationStore"
    for options in ({}, {"folder": ""}, {"folder": 7}, {"folder": folder, "wrong": 1}):
        with pytest.raises(InvalidStore):
            build_store(path, options)
    assert isinstance(build_store(path, {"folder": folder}), FileConversationStore)
    assert isinstance(build_store(path, {"folder": str(folder)}), FileConversationStore)


def test_a_folder_that_is_a_file_is_told(store):
    store.folder.write_text("mine")
    for refused in (lambda: store.append("one", plain_turn()), lambda: store.load("one")):
        with pytest.raises(FileExistsError, match="conversations"):
            refused()
    with pytest.raises(NotADirectoryError, match="conversations"):
        store.list_conversations(None)
    assert store.folder.read_text() == "mine"


def test_a_disk_that_is_full_is_told_and_what_was_stored_is_there(store):
    store.append("one", plain_turn("before"))
    path = path_of(store, "one")
    before = path.read_bytes()
    for room in (0, 1, 100, 1000):
        with room_for(len(before) + room), pytest.raises(OSError, match=r"one\.jsonl") as caught:
            store.append("one", plain_turn("x" * 5000))
        assert caught.value.errno == errno.EFBIG
        assert path.read_bytes() == before
        with room_for(room), pytest.raises(OSError, match=r"two\.jsonl"):
            store.append("two", plain_turn("x" * 5000))
        for each in (store, again(store)):
            assert each.load("one") == plain_turn("before").messages
            assert each.load("two") == ()
    assert sorted(os.listdir(store.folder)) == [".locks", "one.jsonl"]
    store.append("one", plain_turn("after"))
    assert again(store).load("one", keep_last_turns=1) == plain_turn("after").messages


def test_a_turn_that_could_not_be_synced_is_not_stored(store, monkeypatch):
    store.append("one", plain_turn("before"))

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        for conversation_id in ("one", "two"):
            with pytest.raises(OSError, match="No space left"):
                store.append(conversation_id, plain_turn("lost"))
    assert store.load("one") == again(store).load("one") == plain_turn("before").messages
    assert store.load("two") == again(store).load("two") == ()
    store.append("one", plain_turn("after"))


def test_each_write_is_on_the_disk_when_it_returns_unless_fsync_is_off(folder, monkeypatch):
    synced: list[str] = []
    usual = os.fsync

    def sync(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        usual(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    store = FileConversationStore(folder=folder)
    store.append("one", plain_turn())
    assert synced == [".one.jsonl.new", "conversations"]
    store.append("one", plain_turn())
    assert synced[2:] == ["one.jsonl"]
    store.clear("one")
    assert synced[3:] == ["conversations"]
    FileConversationStore(folder=folder, fsync=False).append("one", plain_turn())
    assert len(synced) == 4


def test_a_folder_that_may_not_be_written_is_told():
    with tempfile.TemporaryDirectory() as place, somebody_else_than_root(place):
        store = FileConversationStore(folder=f"{place}/conversations")
        store.append("one", plain_turn())
        before = path_of(store, "one").read_bytes()
        store.folder.chmod(0o500)
        try:
            with pytest.raises(PermissionError, match="conversations"):
                again(store).append("two", plain_turn())
            with pytest.raises(PermissionError, match=r"one\.jsonl"):
                store.clear("one")
        finally:
            store.folder.chmod(0o700)
        assert path_of(store, "one").read_bytes() == before


# Reservations.


def test_a_reservation_is_by_the_clock_on_the_wall(store, monkeypatch):
    store.append("one", plain_turn())
    dead = store.reserve("one")
    other = again(store)
    with pytest.raises(ConversationBusy) as caught:
        other.reserve("one")
    assert caught.value.since == store._held["one"].since
    later = store._clock() + 61
    monkeypatch.setattr(FileConversationStore, "_clock", staticmethod(lambda: later))
    other.reserve("one")
    assert store.renew(dead, 60) is False


def test_a_first_turn_that_was_given_up_leaves_no_file(store):
    for reservation in (store.reserve("one", create=True), store.reserve()):
        for entry in entries_of(tool_turn(), Heading(reservation.conversation_id)):
            assert store.journal(reservation, entry, 60)
        assert path_of(store, reservation.conversation_id).exists()
        store.release(reservation)
    assert os.listdir(store.folder) == [".locks"]


# Without a database.

PROGRAM = """
import django
from django.conf import settings
from pathlib import Path
import sys

settings.configure(
    SECRET_KEY="x",
    AGENT_MEMORY={
        "MODEL": "test",
        "STORE": {
            "BACKEND": "agent_memory.stores.file.FileConversationStore",
            "OPTIONS": {"folder": Path(sys.argv[1]) / "conversations"},
        },
    },
)
django.setup()

from agent_memory import Agent, RemembersConversations, conversation_store
from agent_memory.testing import ScriptedProvider

class User:
    id = 7

class Coach(RemembersConversations, Agent):
    provider = ScriptedProvider(["Stored.", "Blue."])
    generate_titles = False

coach = Coach()
reply = coach.for_user(User()).prompt("Remember: blue.")
reply = coach.continue_last_conversation(User()).prompt("What did I say?")
(stored,) = conversation_store.list_conversations(User())
print(stored.turns, reply.text)
assert "django.contrib.contenttypes" not in sys.modules
"""


@pytest.mark.heavy
def test_a_project_without_a_database_and_without_the_app_may_remember(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("2 Blue.\n", "")
    (path,) = tmp_path.glob("conversations/*.jsonl")
    assert "Remember: blue." in path.read_text()
