"""The admin's page of a short conversation and of a long one: its newest messages, and older ones."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench
from benchmarks.results import OURS, Goal, Outcome, Table
from benchmarks.timing import Entry, race

SHORT, LONG, QUICK_LONG = 400, 10_000, 800
ROWS_A_TURN, MESSAGES_A_TURN = 2, 4


def run(bench: Bench) -> Outcome:
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import reverse

    staff = User.objects.get(pk=1)
    staff.is_staff = staff.is_superuser = True
    staff.save()
    client = Client()
    client.force_login(staff)
    contestants = [each for each in bench.taking_part("transcript") if each.name == OURS]
    long = QUICK_LONG if bench.quick else LONG

    def reading(address: str) -> Entry:
        def read(_: Any) -> None:
            response = client.get(address)
            assert response.status_code == 200

        return Entry(read)

    entries = {}
    for size in (SHORT, long):
        conversation = f"transcript-{size}"
        bench.seed(contestants, conversation, size)
        address = reverse("admin:agent_memory_conversation_change", args=[conversation])
        middle = size // MESSAGES_A_TURN * ROWS_A_TURN // 2
        entries[f"newest of {size:,}"] = reading(address)
        entries[f"older of {size:,}"] = reading(f"{address}?before={middle}")
    bench.database.settle()
    times = race(entries, bench.effort)
    table = Table(
        "The admin's transcript, a page",
        "s",
        {name: {OURS: seconds} for name, seconds in times.items()},
        note="Messages in the conversation. With templates, Markdown and all.",
    )
    goals = [
        Goal.at_most(
            f"Transcript, {page} page of {long:,} messages, of that of {SHORT}",
            times[f"{page} of {long:,}"] / times[f"{page} of {SHORT:,}"],
            1.15,
        )
        for page in ("newest", "older")
    ]
    return Outcome([table], goals)
