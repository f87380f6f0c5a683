"""Conversations in the admin, to be read, and what staff may do with them."""

from django.contrib import admin

from agent_memory.admin.approvals import ToolApprovalAdmin
from agent_memory.admin.conversations import ConversationAdmin
from agent_memory.admin.messages import ConversationMessageAdmin
from agent_memory.models import Conversation, ConversationMessage, ToolApproval

__all__ = ["ConversationAdmin", "ConversationMessageAdmin", "ToolApprovalAdmin"]

admin.site.register(Conversation, ConversationAdmin)
admin.site.register(ConversationMessage, ConversationMessageAdmin)
admin.site.register(ToolApproval, ToolApprovalAdmin)
