"""What a script may hold is checked when it is written, and each reply streams as it is told."""

from __future__ import annotations

import pytest

from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import Message, Reasoning, RefusalPart, Step, TextPart, ToolCall, Usage
from agent_memory.providers import ProviderRequest
from agent_memory.responses import ReasoningDelta, RefusalDelta, TextDelta
from agent_memory.testing import Answer, ScriptedProvider, Title, calls
from agent_memory.testing.replies import play

REQUEST = ProviderRequest(model="test-model", messages=(Message("user", "Hello"),))
USAGE = Usage(input_tokens=5)
LOOK = ToolCall(id="1", name="look")


def played(reply):
    return play(reply, REQUEST, name="scripted", usage=USAGE, new_id=lambda: "new")


def test_an_answer_streams_in_its_pieces_and_its_neighbouring_texts_are_one():
    answer = played(Answer(Reasoning(text="Hm so"), "Sto", "red ", "it.", LOOK, "", "Bye."))
    assert answer.events == (
        *(ReasoningDelta("Hm "), ReasoningDelta("so")),
        *(TextDelta("Sto"), TextDelta("red "), TextDelta("it.")),
        *(TextDelta(""), TextDelta("Bye.")),
    )
    assert answer.outcome == Step(
        items=(
            Reasoning(text="Hm so"),
            TextPart(text="Stored it."),
            LOOK,
            TextPart(text="Bye."),
        ),
        finish_reason="tool_calls",
        usage=USAGE,
        provider="scripted",
        model="test-model",
    )


def test_an_answer_tells_its_finish_reason_and_its_usage():
    used = Usage(input_tokens=9, output_tokens=3, cached_tokens=4, reasoning_tokens=2)
    answer = played(Answer("The quick br", finish_reason="length", usage=used))
    assert (answer.outcome.finish_reason, answer.outcome.usage) == ("length", used)
    assert played(Answer("Done.")).outcome.usage == USAGE


@pytest.mark.parametrize(
    "reply", [RefusalPart(text="I can't."), Answer(RefusalPart(text="I can't."))]
)
def test_a_refusal_streams_and_is_a_finish_reason(reply):
    answer = played(reply)
    assert answer.events == (RefusalDelta("I "), RefusalDelta("can't."))
    assert answer.outcome.finish_reason == "refusal"


def test_an_answer_that_breaks_off_has_no_step():
    answer = played(Answer("Sto", ProviderUnavailable("Gone.")))
    assert answer.events == (TextDelta("Sto"),)
    with pytest.raises(ProviderUnavailable, match="Gone"):
        answer.whole()


def test_calls_are_written_as_names_arguments_and_texts():
    assert calls("now", ("look", {"at": 1}), ("look", "{oops"), LOOK) == (
        ToolCall(id="", name="now"),
        ToolCall(id="", name="look", arguments={"at": 1}),
        ToolCall(id="", name="look", raw_arguments="{oops"),
        LOOK,
    )


@pytest.mark.parametrize("wrong", [(), (7,), (("look",),), (("look", [1]),), ((1, {}),)])
def test_what_is_no_call_is_refused(wrong):
    with pytest.raises(TypeError, match="call"):
        calls(*wrong)


@pytest.mark.parametrize(
    "wrong",
    [7, None, int, {"text": "Hello"}, ("look", {"at": 1}), ["Hello", None], Title(7), b"Hello"],
    ids=repr,
)
def test_what_is_no_reply_is_refused_when_the_script_is_written(wrong):
    provider = ScriptedProvider(["one"])
    with pytest.raises(TypeError, match=r"A reply is text, calls\(\.\.\.\)"):
        provider.extend(["two", wrong])
    assert provider.replies == ["one"]


def test_what_a_function_returns_is_checked_too():
    with pytest.raises(TypeError, match="A reply is text"):
        played(lambda request: 7)


def test_what_is_no_piece_or_finish_reason_of_an_answer_is_refused():
    with pytest.raises(TypeError, match="not 7"):
        Answer("Sto", 7)
    with pytest.raises(TypeError, match="not ProviderUnavailable"):
        Answer("Sto", ProviderUnavailable("Gone."), "red")
    with pytest.raises(ValueError, match="one of stop, tool_calls, length"):
        Answer("Sto", finish_reason="lenght")


def test_an_answer_shows_its_pieces():
    assert repr(Answer("Sto", "red", ValueError("x"))) == "Answer('Sto', 'red', ValueError('x'))"
