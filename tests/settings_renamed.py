"""The suite's settings with every table renamed, in a database of its own."""

from agent_memory.conf import TABLES
from tests import settings
from tests.settings import *  # noqa: F403  settings are modules

AGENT_MEMORY = {**settings.AGENT_MEMORY, "TABLES": {name: f"chat_{name}" for name in TABLES}}
INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "example_project.chat"]
_database = settings.DATABASES["default"]
_test = {**_database.get("TEST", {}), "NAME": f"test_{_database['NAME']}_renamed"}
DATABASES = {
    "default": {**_database, "TEST": {} if settings.TEST_DATABASE == "sqlite" else _test},
}
