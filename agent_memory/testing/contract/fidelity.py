"""What goes in comes out: ids, texts, names, numbers and every kind of part."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from agent_memory.exceptions import InvalidConversationId
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
    Usage,
)
from agent_memory.testing.contract.base import INVALID_IDS, ONE, Promises, plain_turn, raises

# All are different ids, each the near double of another one.
AWKWARD_IDS = (
    *("a", "A", " a", "a ", "a  ", "a\t", "a\n", "\u00e4", "a\u0308", "\u00c4", "\uff21"),
    *("ss", "\u00df", "\u1e9e", "k", "\u212a", "i", "\u0131", "a\u200b", "a\ufeff", " "),
    *("\U0001f600", "\U0001f600" * 255, "../a", "a%00", "\uffff"),
)

ODD_TEXTS = (
    *("", " ", "  two  ", "\n\r\n\t", "\0", "a\0b\0", "\x01\x1f\x7f\x85\u2028\u2029"),
    *("\ud800", "\udfff", "a\udc80b", "\ufffd", "\ufffe\uffff\ufdd0\U0010ffff"),
    *("\u00e4a\u0308", "\u202eabc", "a\u200b", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    *('"\\/', "\\u0000", "\\ud800", "{}", "null", "%s %(a)s {0}", "'; --", "<b>&amp;</b>"),
)
LONG_TEXT = "x" * 100_000

ODD_NUMBERS: tuple[JsonValue, ...] = (
    *(0, 1, -1, True, False, 2**53 + 1, 2**63, -(2**64), 10**400, 10**4000),
    *(0.0, -0.0, 1.0, 0.1, 1e308, 5e-324, 1e16),
)


def nested(depth: int) -> JsonValue:
    value: JsonValue = "core"
    for level in range(depth):
        value = [value] if level % 2 else {"": value}
    return value


ODD_VALUES: tuple[JsonValue, ...] = (
    None,
    [],
    {},
    [[], {}, None, ""],
    {"b": 1, "a": 2, "": None, "\0": "\ud800"},
    list(ODD_NUMBERS),
    nested(200),
)


def every_part() -> Turn:
    """Return a turn that has every kind of part and item, and each of their fields."""
    user = Message(
        "user",
        (
            TextPart(text="See:", provider_options={"cache": {"ttl": 5}}),
            ImagePart(url="https://example.com/a.png", media_type="image/png", file_name="a.png"),
            DocumentPart(
                file_id="file-1", media_type="application/pdf", provider_options={"detail": "low"}
            ),
        ),
    )
    call = ToolCall(
        id="call-1",
        name="look",
        arguments={"at": [1, 2.5, None, {"deep": True}]},
        approval_reason="It costs.",
        result=ToolResult(value={"seen": "a"}),
        provider_metadata={"signature": "c2ln", "b": 1, "a": 2},
    )
    unread = ToolCall(id="call-2", name="look", raw_arguments="{not json", result=ToolResult())
    denied = ToolCall(id="call-3", name="pay", result=ToolResult(value="No.", denied=True))
    failed = ToolCall(id="call-4", name="pay", result=ToolResult(value="Broke.", failed=True))
    steps = (
        Step(
            items=(
                Reasoning(text="Hm."),
                TextPart(text="Let me see.", provider_metadata={"id": "msg_1"}),
                call,
                TextPart(text="And again."),
                unread,
                ProviderToolCall(name="web_search", data={"query": "a", "hits": [1, 2]}),
            ),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=10, output_tokens=5, cached_tokens=3, reasoning_tokens=2),
            provider="openai",
            model="gpt",
        ),
        Step(items=(denied, failed), finish_reason="tool_calls", model="gpt-other"),
        Step(items=(TextPart(text="Well."), RefusalPart(text="No.")), finish_reason="refusal"),
        Step(finish_reason="length"),
    )
    return Turn(user=user, steps=steps)


def turn_of_text(text: str) -> Turn:
    """Return a turn that holds a text wherever a person, a tool or a model can put one."""
    call = ToolCall(
        id=text,
        name=text,
        arguments={text: [text, {text: text}]},
        raw_arguments=text,
        approval_reason=text,
        result=ToolResult(value=text),
        provider_metadata={text: text},
    )
    items = (
        Reasoning(text=text),
        TextPart(text=text, provider_metadata={"id": text}),
        RefusalPart(text=text),
        call,
        ProviderToolCall(name=text, data={text: text}),
    )
    part = TextPart(text=text, provider_options={text: text})
    return Turn(user=Message("user", (part,)), steps=(Step(items=items), Step(model=text)))


def turn_of_value(value: JsonValue) -> Turn:
    call = ToolCall(
        id="call-1", name="echo", arguments={"value": value}, result=ToolResult(value=value)
    )
    return Turn(user=Message("user", "Echo."), steps=(Step(items=(call,)),))


def odd_turns() -> Iterator[Turn]:
    """Yield turns that a store loses part of where it is careless."""
    yield every_part()
    yield Turn(user=Message("user"), steps=())
    yield plain_turn(LONG_TEXT)
    yield turn_of_value(LONG_TEXT)
    yield from map(turn_of_text, ODD_TEXTS)
    yield from map(turn_of_value, (*ODD_VALUES, *ODD_NUMBERS))


class FidelityPromises(Promises):
    """Whatever can be said comes back equal; ids are compared byte for byte."""

    def test_ids_that_look_alike_are_conversations_of_their_own(self) -> None:
        for number, conversation_id in enumerate(AWKWARD_IDS):
            assert self.store.append(conversation_id, plain_turn(f"{number}")).created, (
                conversation_id
            )
        for number, conversation_id in enumerate(AWKWARD_IDS):
            assert self.store.load(conversation_id) == plain_turn(f"{number}").messages, (
                conversation_id
            )
        self.store.clear("a")
        for conversation_id in AWKWARD_IDS:
            assert bool(self.store.load(conversation_id)) == (conversation_id != "a")

    def test_an_invalid_id_is_refused_before_anything_else(self) -> None:
        for conversation_id in INVALID_IDS:
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.load(conversation_id)
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.append(conversation_id, plain_turn())
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.clear(conversation_id)
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.reserve(conversation_id, create=True)

    def test_every_part_text_name_and_number_comes_back_equal(self) -> None:
        for turn in odd_turns():
            self.store.append(ONE, turn)
            loaded = self.store.load(ONE, keep_last_turns=1)
            assert loaded == turn.messages
            # Equality knows no difference between 1, 1.0 and True, nor between orders of keys.
            assert repr(loaded) == repr(turn.messages)
