"""
A process in which Django is ready, and which takes orders, a JSON line each.

It forks a worker for each order and answers with its process id, and answers
``{"wait": id}`` with the worker's exit status once that has ended. Told ``alone``
as its argument, it says that it is ready and carries out one order itself.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import django


def main() -> None:
    django.setup()
    from django.db import connections

    from tests.faults import orders

    assert connections["default"].connection is None  # the driver is loaded, nothing is open
    del connections["default"]

    def perform(order: dict[str, Any]) -> None:
        connections.settings["default"] |= order["database"]
        orders.perform(order)

    if "alone" in sys.argv:
        answer_with("ready")
        perform(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer_with(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]))
        else:
            worker = os.fork()
            if not worker:
                perform(order)
            answer_with(worker)


def answer_with(answer: object) -> None:
    print(answer, flush=True)  # noqa: T201  to its starter


if __name__ == "__main__":
    main()
