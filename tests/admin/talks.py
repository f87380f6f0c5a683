"""Conversations with all that a transcript can show, for the admin's tests and browser tests."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Turn,
    TurnError,
    Usage,
)
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore
from tests.files import PDF

store = DatabaseConversationStore()

MARKDOWN = """\
Your **blue chair** was in stock in two places:

| Warehouse | Chairs | Price |
|:--|--:|--:|
| Kiel | 12 | 49.90 |
| Lyon | 3 | 52.00 |

1. I reserved one in *Kiel*.
2. It leaves tomorrow with `DHL-17`.

> We ship before noon.

```python
def total(price, count):
    return price * count  # <b>no markup</b>
```

See [the terms](https://shop.example/terms) for returns.
"""

HOSTILE = """\
<script>alert('script')</script>
<img src=x onerror="alert('onerror')">
[click](javascript:alert(1)) ![pixel](https://tracker.example/pixel.png)
![inline](data:image/svg+xml;base64,PHN2Zz4=)
<iframe src="https://evil.example"></iframe> <style>body { display: none }</style>
[ok](https://shop.example "onmouseover=alert(1)") </div></article></main>
<svg/onload=alert(2)> {{ 7 }} {% now "Y" %} &lt;b&gt; \u202egnp.exe
"""

HOSTILE_NAME = '"><img src=x onerror=alert(3)>\u202egnp.svg'


def picture(width: int, height: int) -> bytes:
    """Return a PNG that goes from one colour to another."""
    rows = b"".join(
        b"\0"
        + b"".join(
            bytes((60 + x * 190 // width, 120, 250 - y * 190 // height)) for x in range(width)
        )
        for y in range(height)
    )

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def ask(
    heading: Heading, said: Any, *items: Any, status: Any = "completed", error: Any = None
) -> None:
    """Append a turn of one step."""
    step = Step(
        items=items,
        usage=Usage(input_tokens=1200, output_tokens=85, cached_tokens=1024, reasoning_tokens=20),
        provider="openai",
        model="gpt-5-mini",
    )
    steps = (step,) if items else ()
    turn = Turn(user=Message("user", said), steps=steps, status=status, error=error)
    store.append(heading, turn)


def rich(participant: Any, *, key: str = "rich", title: str = "Where is my blue chair?") -> str:
    """Store a conversation that has a bit of everything, and waits for a person; return its id."""
    owner = Participant.of(participant)
    store.create(
        key,
        participant=owner,
        agent="shop.agents.Clerk",
        title=title,
        leading=[Message("system", "You are a clerk.\nBe **kind**, and short.")],
    )
    heading = Heading(key, owner, "shop.agents.Clerk")
    look = ToolCall(
        id="call_1",
        name="look_up_order",
        arguments={"order": "A-17", "with": ["items", "address"]},
        result=ToolResult(value={"state": "packed", "items": [{"sku": "chair-blue", "count": 1}]}),
    )
    ask(
        heading,
        "Where is my blue chair?\n\nI ordered it   *last week*.",
        Reasoning(text="The person asks about an order. I **look it up** first."),
        look,
        TextPart(text=MARKDOWN),
    )
    ask(
        heading,
        [
            TextPart(text="This is what came instead, with the invoice."),
            ImagePart(data=picture(240, 160), media_type="image/png", file_name="chair.png"),
            DocumentPart(data=PDF, media_type="application/pdf", file_name="invoice 17.pdf"),
            ImagePart(url="https://elsewhere.example/chair.png", file_name="far.png"),
        ],
        ProviderToolCall(name="web_search", data={"query": "blue chair", "results": 3}),
        TextPart(text="That is a **stool**. I am sorry."),
    )
    failed = ToolCall(
        id="call_2",
        name="call_courier",
        arguments={"number": "+49 431 17"},
        result=ToolResult(value="The courier did not answer.", failed=True),
    )
    ask(
        heading,
        "Call the courier, please.",
        failed,
        ToolCall(id="call_3", name="send_mail", raw_arguments='{"to": "courier'),
        status="failed",
        error=TurnError(code="ProviderUnavailable", status=503, request_id="req_17"),
    )
    ask(heading, "Tell me their address.", RefusalPart(text="I cannot give addresses of people."))
    refund = ToolCall(
        id="call_4",
        name="refund",
        arguments={"order": "A-17", "amount": 49.9},
        approval_reason="Refunds above 20 need a person.",
    )
    ask(heading, "Then I want my money back.", TextPart(text="Of course."), refund, status="paused")
    return key


def hostile(participant: Any, *, key: str = "hostile") -> str:
    """Store a conversation in which every text, name and file tries to do harm; return its id."""
    owner = Participant.of(participant)
    heading = Heading(key, owner, HOSTILE_NAME, HOSTILE[:255], "draft")
    call = ToolCall(
        id=HOSTILE,
        name=HOSTILE,
        arguments={HOSTILE: [HOSTILE, "\ud800"]},
        result=ToolResult(value={"html": HOSTILE}),
    )
    svg = (
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(4)"><script>alert(5)</script></svg>'
    )
    ask(
        heading,
        [
            TextPart(text=HOSTILE + "\ud800"),
            ImagePart(data=picture(20, 20), media_type="image/png", file_name=HOSTILE_NAME),
            ImagePart(data=svg, media_type="image/svg+xml", file_name=HOSTILE_NAME),
            DocumentPart(data=b"<script>alert(6)</script>", media_type="text/html"),
            ImagePart(url="https://tracker.example/1.png", file_name="\ud800" + HOSTILE_NAME),
            DocumentPart(url="javascript:alert(7)"),
            DocumentPart(file_id=HOSTILE),
        ],
        Reasoning(text=HOSTILE),
        call,
        ProviderToolCall(name=HOSTILE, data={"\udfff": HOSTILE}),
        RefusalPart(text=HOSTILE),
        TextPart(text=HOSTILE),
    )
    return key


def long(participant: Any, turns: int, *, key: str = "long") -> str:
    """Store a conversation of so many turns, and a leading message; return its id."""
    owner = Participant.of(participant)
    store.create(
        key, participant=owner, title="A long talk", leading=[Message("system", "Be brief.")]
    )
    for number in range(turns):
        step = Step(items=(TextPart(text=f"Answer {number}."),))
        turn = Turn(user=Message("user", f"Question {number}?"), steps=(step,))
        store.append(Heading(key, owner, "shop.agents.Clerk"), turn)
    return key
