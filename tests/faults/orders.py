"""What a worker can be told to do. Each order ends its process."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from agent_memory import conversation_store
from agent_memory.exceptions import ConversationConflict
from tests.faults.boundaries import boundaries
from tests.faults.clerks import Clerk, Ledger, asking, note_in
from tests.faults.operations import ADA
from tests.faults.points import Points, StagedProvider, StagedStore
from tests.faults.resumers import decide_many, resume_many, resume_one
from tests.faults.talking import Talk
from tests.fixtures import ask_for_a_stream, ask_plainly


class Report:
    """A file that whoever gave the order reads; each fact is a line, written at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def tell(self, **facts: Any) -> None:
        os.write(self._file, json.dumps(facts).encode() + b"\n")


def perform(order: dict[str, Any]) -> None:
    """Carry an order out, and end this process."""
    report, status = Report(order["report"]), 0
    settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, **order.get("settings", {})}
    try:
        ORDERS[order["kind"]](order, report)
    except BaseException:
        report.tell(broken=traceback.format_exc())
        status = 1
    finally:
        connections.close_all()
        os._exit(status)


def take_one_turn(order: dict[str, Any], report: Report) -> None:
    """Take a turn, and stand still at one of its points."""
    go = None if order.get("passing") else Path(order["report"] + ".go")
    points = Points(report.tell, order["stop"], go)
    provider, store, ledger = StagedProvider(), StagedStore(), Ledger(Path(order["ledger"]))
    provider.points = store.points = points
    conversation_store.list_conversations(ADA)  # has the content types looked up
    clerk = Clerk(provider=provider, store=store, tools=[note_in(ledger, points.at)])
    if order["conversation_id"] is None or order["new"]:
        bound = clerk.for_participant(ADA)
    else:
        bound = clerk.continue_conversation(order["conversation_id"], ADA)
    options = {"idempotency_key": order["key"]}
    if order["new"]:
        options["conversation_id"] = order["conversation_id"]
    way = ask_for_a_stream if order.get("streamed") else ask_plainly
    prompt = asking(order["prompt"], steps=1, calls=order.get("calls", 1))
    try:
        with boundaries(points.at):
            way(bound, prompt, **options)
    except ConversationConflict as conflict:
        report.tell(overtaken=None if conflict.turn is None else conflict.turn.model_dump())


def talk(order: dict[str, Any], report: Report) -> None:
    """Hold many turns."""
    Talk(order, report.tell).hold()


ORDERS: dict[str, Callable[[dict[str, Any], Report], None]] = {
    "one turn": take_one_turn,
    "talk": talk,
    "resume one": lambda order, report: resume_one(order, report.tell),
    "resume many": lambda order, report: resume_many(order, report.tell),
    "decide many": lambda order, report: decide_many(order, report.tell),
}
