"""The suite's settings with conversations in a second database of the same kind."""

from typing import Any

from tests import settings
from tests.settings import *  # noqa: F403  settings are modules

AGENT_MEMORY = {**settings.AGENT_MEMORY, "DATABASE": "memory"}
DATABASE_ROUTERS = ["agent_memory.routers.MemoryRouter"]


def beside(suffix: str) -> dict[str, Any]:
    """Return the suite's database under a name of its own."""
    usual: dict[str, Any] = settings.DATABASES["default"]
    name = f"test_{usual['NAME']}_{suffix}"
    if settings.TEST_DATABASE == "sqlite":
        name = f"file:{suffix}?mode=memory&cache=shared"
    return {**usual, "TEST": {**usual.get("TEST", {}), "NAME": name}}


DATABASES = {"default": beside("first"), "memory": beside("second")}
