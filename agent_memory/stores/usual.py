"""
Values of the shapes that nearly all have, made of their JSON data without a validator.

Of any other shape each function returns ``None``; a validator takes that or refuses it.
"""

from __future__ import annotations

from typing import Any, get_args

from agent_memory.messages import FinishReason, Step, StepItem, ToolCall, ToolResult, Usage
from agent_memory.parts import trusting
from agent_memory.records import NO_USAGE

_step, _usage = trusting(Step), trusting(Usage)
_call, _result = trusting(ToolCall), trusting(ToolResult)

FINISH_REASONS = get_args(FinishReason)
_OF_STEPS = {"finish_reason", "usage", "provider", "model"}
_NO_TOKENS = NO_USAGE.model_dump()


def answered_call(data: Any) -> ToolCall | None:
    """Return a call that has its result and nothing of what few calls have."""
    if type(data) is not dict or len(data) != 5 or data.get("type") != "tool_call":
        return None
    call_id, name, arguments = data.get("id"), data.get("name"), data.get("arguments")
    result = data.get("result")
    if type(call_id) is not str or type(name) is not str or type(arguments) is not dict:
        return None
    if type(result) is not dict or len(result) != 1 or "value" not in result:
        return None
    return _call(
        type="tool_call",
        id=call_id,
        name=name,
        arguments=arguments,
        raw_arguments=None,
        approval_reason=None,
        edited=None,
        result=_result(value=result["value"], failed=False, denied=False),
        provider_metadata={},
    )


def step(data: Any, items: tuple[StepItem, ...]) -> Step | None:
    """Return a step of its items and of what else is known of it, but for its replay."""
    if type(data) is not dict or not data.keys() <= _OF_STEPS:
        return None
    finish_reason, tokens = data.get("finish_reason", "stop"), data.get("usage")
    provider, model = data.get("provider", ""), data.get("model", "")
    if finish_reason not in FINISH_REASONS or type(provider) is not str or type(model) is not str:
        return None
    counted = usage(tokens) if "usage" in data else NO_USAGE
    if counted is None:
        return None
    return _step(
        items=items,
        finish_reason=finish_reason,
        usage=counted,
        provider=provider,
        model=model,
        replay=None,
    )


def usage(data: Any) -> Usage | None:
    """Return tokens as they were counted."""
    if type(data) is not dict or not data.keys() <= _NO_TOKENS.keys():
        return None
    for number in data.values():
        if type(number) is not int:
            return None
    return _usage(**(_NO_TOKENS | data))
