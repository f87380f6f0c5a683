"""
What drafting a title adds to the first turn.

A loopback server takes one second for each answer; both calls go to it through
the real ``openai`` client. Drafted after the reply, a title would double the
first turn; drafted beside it, it should add next to nothing.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import django
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command

SECONDS = 1.0
ROUNDS = 3


class SlowModel(BaseHTTPRequestHandler):
    """Answers every request of the Responses API after a second."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(SECONDS)
        text = {"type": "output_text", "text": "An answer", "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        body = json.dumps(
            {
                "id": "r",
                "object": "response",
                "created_at": 0,
                "model": "slow",
                "status": "completed",
                "output": [message | {"content": [text]}],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


def main() -> None:
    """Print the first turn's time without a title, with one beside, and their ratio."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "agent_memory"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        AGENT_MEMORY={
            "MODEL": "slow",
            "PROVIDER": {
                "BACKEND": "agent_memory.providers.openai_responses.OpenAIResponsesProvider",
                "OPTIONS": {
                    "api_key": "none",
                    "base_url": f"http://127.0.0.1:{server.server_port}/v1",
                },
            },
        },
    )
    django.setup()
    call_command("migrate", verbosity=0)

    from agent_memory import Agent, RemembersConversations, conversation_store

    class Coach(RemembersConversations, Agent):
        pass

    def first_turn(*, titled: bool, asynchronous: bool) -> float:
        coach = Coach(generate_titles=titled).for_participant(None)
        ask: Callable[[str], object] = (
            async_to_sync(coach.aprompt) if asynchronous else coach.prompt
        )
        begun = time.perf_counter()
        ask("Hello")
        seconds = time.perf_counter() - begun
        stored = conversation_store.get(coach.current_conversation_id or "")
        assert stored is not None
        assert stored.title_source == ("draft" if titled else "prompt")
        return seconds

    first_turn(titled=True, asynchronous=False)
    for asynchronous in (False, True):
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for titled in times:
                times[titled].append(first_turn(titled=titled, asynchronous=asynchronous))
        plain, beside = statistics.median(times[False]), statistics.median(times[True])
        print(
            f"{'aprompt' if asynchronous else 'prompt '}  no title {plain:.2f} s   "
            f"title drafted beside {beside:.2f} s   ratio {beside / plain:.2f}"
        )
    server.shutdown()


if __name__ == "__main__":
    main()
