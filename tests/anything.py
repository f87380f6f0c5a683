"""Whatever a person, a model or a tool can say, for property tests."""

from __future__ import annotations

import random
from typing import Any, get_args

from hypothesis import strategies as st

from agent_memory.messages import (
    DocumentPart,
    FinishReason,
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
from agent_memory.testing.contract.fidelity import ODD_NUMBERS, ODD_TEXTS

# Every code point there is, lone surrogates and NUL too; each near one that is easily mistaken.
CHARACTERS = st.characters() | st.sampled_from(
    "aA\u00e4\u0308 \t\n\0\x7f\u200b\ud800\udc80\U0001f600'\\%"
)
TEXTS = st.text(CHARACTERS, max_size=20) | st.sampled_from(ODD_TEXTS)
MAYBE = st.none() | TEXTS
SHORT_TEXTS = TEXTS | st.text(CHARACTERS, min_size=253, max_size=257)
"""Around what an id, a title or a label may have at most."""

NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([each for each in ODD_NUMBERS if not isinstance(each, bool)])
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=2)
BYTES = st.binary(max_size=200) | st.builds(
    lambda seed, size: random.Random(seed).randbytes(size),
    st.integers(0, 9),
    st.sampled_from([1, 65_535, 65_536, 300_000]),
)

TOLD_OF_FILES = {"media_type": TEXTS, "file_name": TEXTS, "provider_options": OBJECTS}
FILES = st.one_of(
    st.builds(kind, **{source: values}, **TOLD_OF_FILES)
    for kind in (ImagePart, DocumentPart)
    for source, values in (("data", BYTES), ("url", TEXTS), ("file_id", TEXTS))
)
ASKED = st.builds(TextPart, text=TEXTS, provider_options=OBJECTS) | FILES
"""The parts of what a person says."""

MESSAGES = st.builds(Message, st.just("user"), st.lists(ASKED, max_size=3))

RESULTS = st.builds(ToolResult, value=JSON, failed=st.booleans(), denied=st.booleans())
CALLED: dict[str, Any] = {
    "id": TEXTS,
    "name": TEXTS,
    "arguments": OBJECTS,
    "raw_arguments": MAYBE,
    "provider_metadata": OBJECTS,
}
CALLS = st.builds(
    ToolCall,
    **CALLED,
    approval_reason=MAYBE,
    edited=st.none() | OBJECTS,
    result=st.none() | RESULTS,
)
ITEMS = st.one_of(
    st.builds(TextPart, text=TEXTS, provider_metadata=OBJECTS),
    st.builds(RefusalPart, text=TEXTS),
    st.builds(Reasoning, text=TEXTS),
    st.builds(ProviderToolCall, name=TEXTS, data=OBJECTS),
    CALLS,
)
TOKENS = st.integers(0, 2**70)
USAGES = st.builds(
    Usage,
    input_tokens=TOKENS,
    output_tokens=TOKENS,
    cached_tokens=TOKENS,
    reasoning_tokens=TOKENS,
)
STEPS = st.builds(
    Step,
    items=st.lists(ITEMS, max_size=3).map(tuple),
    finish_reason=st.sampled_from(get_args(FinishReason)),
    usage=USAGES,
    provider=TEXTS,
    model=TEXTS,
)
TURNS = st.builds(
    Turn,
    user=MESSAGES,
    steps=st.lists(STEPS, max_size=2).map(tuple),
    title_usage=USAGES,
) | st.builds(
    Turn,
    user=MESSAGES,
    steps=st.lists(STEPS, max_size=2).map(tuple),
    status=st.just("failed"),
    error=st.builds(TurnError, code=TEXTS, status=st.none() | st.integers(), request_id=MAYBE),
)
