"""A memory for AI agents in Django."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.agents import Agent, AnonymousAgent
    from agent_memory.approvals import Approve, Deny, Edit
    from agent_memory.attachments import load_file, load_image, load_pdf
    from agent_memory.conversations import RemembersConversations
    from agent_memory.messages import Message
    from agent_memory.participants import Participant
    from agent_memory.stores import conversation_store
    from agent_memory.tools import Tool, ToolContext, tool

__all__ = [
    "Agent",
    "AnonymousAgent",
    "Approve",
    "Deny",
    "Edit",
    "Message",
    "Participant",
    "RemembersConversations",
    "Tool",
    "ToolContext",
    "conversation_store",
    "load_file",
    "load_image",
    "load_pdf",
    "tool",
]

_HOMES = {
    "Agent": "agents",
    "AnonymousAgent": "agents",
    "Approve": "approvals",
    "Deny": "approvals",
    "Edit": "approvals",
    "Message": "messages",
    "Participant": "participants",
    "RemembersConversations": "conversations",
    "Tool": "tools",
    "ToolContext": "tools",
    "conversation_store": "stores",
    "load_file": "attachments",
    "load_image": "attachments",
    "load_pdf": "attachments",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
