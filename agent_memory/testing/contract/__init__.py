"""The parts of the store contract, one for each concept."""

from agent_memory.testing.contract.approvals import ApprovalPromises
from agent_memory.testing.contract.attachments import AttachmentPromises
from agent_memory.testing.contract.conversations import ConversationPromises
from agent_memory.testing.contract.decisions import DecisionPromises
from agent_memory.testing.contract.fidelity import FidelityPromises
from agent_memory.testing.contract.files import FilePromises
from agent_memory.testing.contract.histories import HistoryPromises
from agent_memory.testing.contract.interruptions import InterruptionPromises
from agent_memory.testing.contract.journals import JournalPromises
from agent_memory.testing.contract.keys import KeyPromises
from agent_memory.testing.contract.latecomers import LatePromises
from agent_memory.testing.contract.ownership import OwnershipPromises
from agent_memory.testing.contract.pages import PagePromises
from agent_memory.testing.contract.reservations import ReservationPromises
from agent_memory.testing.contract.resuming import ResumingPromises
from agent_memory.testing.contract.settling import SettlingPromises
from agent_memory.testing.contract.turns import TurnPromises

__all__ = [
    "ApprovalPromises",
    "AttachmentPromises",
    "ConversationPromises",
    "DecisionPromises",
    "FidelityPromises",
    "FilePromises",
    "HistoryPromises",
    "InterruptionPromises",
    "JournalPromises",
    "KeyPromises",
    "LatePromises",
    "OwnershipPromises",
    "PagePromises",
    "ReservationPromises",
    "ResumingPromises",
    "SettlingPromises",
    "TurnPromises",
]
