"""
A process that forks workers on one folder, kills them or lets them finish, and looks what is left.

``python -m tests.stores.file_workers KIND FOLDER ROUNDS`` ends with 0 if all is well.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

from agent_memory.exceptions import ConversationBusy
from agent_memory.records import Heading
from agent_memory.stores.file import FileConversationStore
from agent_memory.testing.contract.base import messages_of, plain_turn, tool_turn
from agent_memory.testing.contract.journals import entries_of

WORKERS = 4


def forked(work: Callable[[], None]) -> int:
    """Have a child do some work; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
    finally:
        os._exit(status)


def join(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(folder: str, kills: int) -> None:
    """Kill writers at random moments: what they were told is stored is there, and whole."""
    known = FileConversationStore(folder=folder)
    for count in range(kills):
        if count % 10 == 0:
            conversation_id, number = f"{count}", 0
        reading, writing = os.pipe()

        def write(one: str = conversation_id, first: int = number, told: int = writing) -> None:
            store = FileConversationStore(folder=folder)
            for current in range(first, first + 10_000):
                prompt = f"{current}:" + "x" * random.randrange(20_000)
                reservation = store.reserve(one, create=True)
                if current % 3 == 0:
                    for entry in entries_of(tool_turn(), Heading(one)):
                        store.journal(reservation, entry, 60)
                store.append(one, plain_turn(prompt, "!"), reservation=reservation)
                os.write(told, b".")

        pid = forked(write)
        os.close(writing)
        os.read(reading, 1)  # it is at work
        time.sleep(random.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        join(pid)
        told = 1
        while more := os.read(reading, 65_536):
            told += len(more)
        os.close(reading)
        for store in (known, FileConversationStore(folder=folder)):
            said = [message for message in store.load(conversation_id) if message.role == "user"]
            numbers = [text.partition(":")[0] for text in (message.text for message in said)]
            written = [int(number) for number in numbers if number.isdigit()]
            assert written == [*range(len(written))], written
            assert number + told <= len(written) <= number + told + 1
        number = len(written)
        take_over(folder, conversation_id)


def take_over(folder: str, conversation_id: str) -> None:
    """Come after a killed worker, when its reservation has ended."""
    store = FileConversationStore(folder=folder)
    store.load(conversation_id)
    if held := store._held.get(conversation_id):
        later = held.until + 1
        store._clock = lambda: later  # type: ignore[misc, assignment]  # a later clock
        store.release(store.reserve(conversation_id))


def contend(folder: str, turns: int) -> None:
    """Let workers take turns: each turn is there once, and none between the messages of another."""

    def work(worker: int) -> None:
        store = FileConversationStore(folder=folder, fsync=False)
        for number in range(turns):
            while True:
                try:
                    reservation = store.reserve("one", create=True)
                    break
                except ConversationBusy:
                    time.sleep(0.001)
            history = len(store.load("one", reservation=reservation))
            turn = plain_turn(f"{worker}.{number}", f"{history}")
            store.append("one", turn, reservation=reservation)
            store.append(f"{worker}", turn)
            store.list_conversations(None)

    before = FileConversationStore(folder=folder)
    assert before.load("one") == ()
    pids = [forked(lambda worker=worker: work(worker)) for worker in range(WORKERS)]  # type: ignore[misc]
    assert [join(pid) for pid in pids] == [0] * WORKERS
    messages = before.load("one")
    asked, answers = messages[::2], messages[1::2]
    assert [answer.text for answer in answers] == [f"{2 * at}" for at in range(WORKERS * turns)]
    for worker in range(WORKERS):
        mine = [message.text for message in asked if message.text.startswith(f"{worker}.")]
        assert mine == [f"{worker}.{number}" for number in range(turns)]
        assert len(before.load(f"{worker}")) == 2 * turns
    assert len(before.list_conversations(None)) == WORKERS + 1


def fork(folder: str, children: int) -> None:
    """Fork while threads write: parent and children go on."""
    store = FileConversationStore(folder=folder, fsync=False)
    stopped, written = threading.Event(), [0]

    def write() -> None:
        while not stopped.is_set():
            store.append("parents", plain_turn())
            written[0] += 1

    threads = [threading.Thread(target=write, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()

    def work() -> None:
        for _ in range(3):
            store.append("childrens", plain_turn())
            store.append("parents", plain_turn())

    for _ in range(children):
        assert join(forked(work)) == 0
    stopped.set()
    for thread in threads:
        thread.join()
    assert store.load("childrens") == messages_of([plain_turn()] * 3 * children)
    assert len(store.load("parents")) == 2 * (written[0] + 3 * children)


if __name__ == "__main__":
    {"kill": kill, "contend": contend, "fork": fork}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
