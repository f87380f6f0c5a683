"""Who takes part: each class answers ``base.Contestant``, each library has a file."""

from __future__ import annotations

from benchmarks.contestants.agentic_django import AgenticDjango
from benchmarks.contestants.bare_orm import BareORM
from benchmarks.contestants.base import Contestant
from benchmarks.contestants.django_ai_assistant import DjangoAIAssistant
from benchmarks.contestants.langchain_history import LangChainHistory
from benchmarks.contestants.langgraph_saver import LangGraphSaver
from benchmarks.contestants.openai_agents import SQLAlchemySessions, SQLiteSessions
from benchmarks.contestants.ours import OurJournalledTurn, OurPageOfEntries, OurPrompt, OurStore
from benchmarks.contestants.pydantic_ai_recipe import PydanticAIRecipe
from benchmarks.contestants.raw_driver import RawDriver

ALL: tuple[type[Contestant], ...] = (
    RawDriver,
    BareORM,
    OurStore,
    OurPageOfEntries,
    OurJournalledTurn,
    OurPrompt,
    SQLiteSessions,
    SQLAlchemySessions,
    AgenticDjango,
    DjangoAIAssistant,
    LangGraphSaver,
    LangChainHistory,
    PydanticAIRecipe,
)
