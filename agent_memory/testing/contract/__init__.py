"""The parts of the store contract, one for each concept."""

from agent_memory.testing.contract.conversations import ConversationPromises
from agent_memory.testing.contract.fidelity import FidelityPromises
from agent_memory.testing.contract.histories import HistoryPromises
from agent_memory.testing.contract.interruptions import InterruptionPromises
from agent_memory.testing.contract.journals import JournalPromises
from agent_memory.testing.contract.keys import KeyPromises
from agent_memory.testing.contract.ownership import OwnershipPromises
from agent_memory.testing.contract.pages import PagePromises
from agent_memory.testing.contract.reservations import ReservationPromises
from agent_memory.testing.contract.turns import TurnPromises

__all__ = [
    "ConversationPromises",
    "FidelityPromises",
    "HistoryPromises",
    "InterruptionPromises",
    "JournalPromises",
    "KeyPromises",
    "OwnershipPromises",
    "PagePromises",
    "ReservationPromises",
    "TurnPromises",
]
