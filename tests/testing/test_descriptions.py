"""What the message of a failed test shows of a request is all that matters, a line each."""

from __future__ import annotations

from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
)
from agent_memory.providers import ProviderRequest, ToolSpec
from agent_memory.testing.descriptions import LONGEST, brief, message_lines, request_lines

LOOKED = ToolCall(id="1", name="look", arguments={"at": "sky"}, result=ToolResult(value="clear"))


def test_a_request_is_told_with_its_history_its_tools_and_the_steps_of_its_turn():
    request = ProviderRequest(
        model="test-model",
        messages=(
            *(Message("user", f"before {number}") for number in range(2)),
            *(Message("assistant", f"answer {number}") for number in range(9)),
            Message("assistant", "Look.", tool_calls=(LOOKED, ToolCall(id="2", name="end"))),
            Message("user", "What now?"),
        ),
        instructions="Be  short.",
        tools=(ToolSpec("look", "", {}), ToolSpec("end", "", {})),
        steps=(
            Step(items=(TextPart(text="So."), LOOKED)),
            Step(items=(ToolCall(id="3", name="look", raw_arguments="{oops"),)),
        ),
    )
    assert list(request_lines(request)) == [
        "  model: test-model",
        "  instructions: Be short.",
        "  tools: look, end",
        "  ... 2 messages before these",
        *(f"  assistant: answer {number}" for number in range(9)),
        '  assistant: Look. look({"at": "sky"}) end({})',
        "  prompt: What now?",
        "  answered: So.",
        '  called: look({"at": "sky"}) -> clear',
        "  called: look({oops) -> no result",
    ]


def test_a_bare_request_is_its_model_and_its_prompt():
    request = ProviderRequest(model="tiny", messages=(Message("user", "Hello"),))
    assert list(request_lines(request)) == ["  model: tiny", "  prompt: Hello"]


def test_messages_are_told_by_role():
    told = message_lines([Message("system", "Be short."), Message("tool", "6", tool_call_id="1")])
    assert list(told) == ["  system: Be short.", "  tool: 6"]


def test_files_are_named():
    parts = [
        TextPart(text="Compare."),
        ImagePart(data=b"png", media_type="image/png"),
        DocumentPart(data=b"pdf", file_name="report.pdf"),
        DocumentPart(file_id="file-1"),
    ]
    request = ProviderRequest(model="tiny", messages=(Message(content=parts),))
    *_, prompt = request_lines(request)
    assert prompt == "  prompt: Compare. [image/png] [report.pdf] [file]"


def test_long_texts_are_cut_and_lines_are_joined():
    assert brief("Hello\n  you") == "Hello you"
    assert brief("x" * LONGEST) == "x" * LONGEST
    assert brief("x" * (LONGEST + 1)) == "x" * LONGEST + "…"
