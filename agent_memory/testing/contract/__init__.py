"""The parts of the store contract; a store that writes few methods may take the first two alone."""

from agent_memory.testing.contract.conversations import ConversationPromises
from agent_memory.testing.contract.fidelity import FidelityPromises
from agent_memory.testing.contract.histories import HistoryPromises
from agent_memory.testing.contract.ownership import OwnershipPromises
from agent_memory.testing.contract.pages import PagePromises
from agent_memory.testing.contract.reservations import ReservationPromises
from agent_memory.testing.contract.turns import TurnPromises

__all__ = [
    "ConversationPromises",
    "FidelityPromises",
    "HistoryPromises",
    "OwnershipPromises",
    "PagePromises",
    "ReservationPromises",
    "TurnPromises",
]
