"""
A process that takes orders, a JSON line each, and forks a worker for each of them.

It answers an order with the worker's process id, and ``{"wait": id}`` with the
worker's exit status once that has ended.
"""

from __future__ import annotations

import json
import os
import sys

import django


def main() -> None:
    django.setup()
    from django.db import connections

    from tests.faults import orders

    assert connections["default"].connection is None  # the driver is loaded, nothing is open
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                orders.perform(order)
        print(answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
