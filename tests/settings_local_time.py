"""The suite's settings in a project that keeps times without a zone, in a database of its own."""

from tests import settings
from tests.settings import *  # noqa: F403  settings are modules

USE_TZ = False
TIME_ZONE = "America/New_York"

_usual = settings.DATABASES["default"]
_own = {} if settings.TEST_DATABASE == "sqlite" else {"NAME": f"test_{_usual['NAME']}_local_time"}
DATABASES = {"default": {**_usual, "TEST": {**_usual.get("TEST", {}), **_own}}}
