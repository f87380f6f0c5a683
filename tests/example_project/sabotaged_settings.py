"""The example's settings with a store that forgets."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403
from example_project.settings import AGENT_MEMORY

AGENT_MEMORY = {
    **AGENT_MEMORY,
    "STORE": {"BACKEND": "tests.example_project.sabotaged_stores.Forgetful"},
}
