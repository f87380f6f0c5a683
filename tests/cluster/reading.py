"""Tell what is in the tables of servers: turns, every row, and what does not hold of them."""

from __future__ import annotations

from typing import Any

from django.db import connection

from agent_memory.models import Conversation, ConversationMessage, TurnJournal
from tests.cluster.telling import tell
from tests.faults.checker import faults_of_tables, pairs


def main(*ports: int) -> None:
    tell(servers=[read(port) for port in ports])


def read(port: int) -> dict[str, Any]:
    connection.close()
    connection.settings_dict["PORT"] = port
    models = Conversation, ConversationMessage, TurnJournal
    return {
        "faults": faults_of_tables(),
        "rows": [list(model.objects.order_by("pk").values()) for model in models],
        "turns": [
            {
                "conversation": pair.said.conversation_id,
                "position": pair.said.position,
                "key": pair.said.content,
                "text": pair.answered.content,
                "status": pair.answered.status,
                "ids": [str(pair.said.id), str(pair.answered.id)],
            }
            for pair in sorted(pairs(), key=lambda pair: pair.said.position)
        ],
    }
