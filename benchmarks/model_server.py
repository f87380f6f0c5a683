"""A model on loopback, in a process of its own, that answers after a while, token by token."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from example_project.endpoints.openai_shapes import ResponsesShapes

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
MODEL = "bench"


@contextmanager
def serving(seconds: float, tokens: int) -> Iterator[str]:
    """Serve answers of so many tokens, begun after so many seconds; give the ``base_url``."""
    command = [sys.executable, "-m", __name__, str(seconds), str(tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


async def _serve(seconds: float, tokens: int) -> None:
    events = ResponsesShapes(MODEL, "word " * tokens, 1).events()
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    answer = HEAD + b"".join(b"%x\r\n%b\r\n" % (len(e), e) for e in map(str.encode, lines)) + END

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                found = LENGTH.search(head)
                await reader.readexactly(int(found[1]) if found else 0)
                await asyncio.sleep(seconds)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2])))
