"""The suite's settings with a user model of the project's own, in a database of its own."""

from tests import settings
from tests.settings import *  # noqa: F403  settings are modules

AUTH_USER_MODEL = "testapp.Member"

_usual = settings.DATABASES["default"]
_own = {} if settings.TEST_DATABASE == "sqlite" else {"NAME": f"test_{_usual['NAME']}_custom_user"}
DATABASES = {"default": {**_usual, "TEST": {**_usual.get("TEST", {}), **_own}}}
