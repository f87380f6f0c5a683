"""The suite's settings over the databases of a cluster, which ``CLUSTER_SETTINGS`` tells."""

import json
import os

from tests import settings
from tests.settings import *  # noqa: F403  settings are modules

_told = json.loads(os.environ["CLUSTER_SETTINGS"])

DATABASES = _told["DATABASES"]
DATABASE_ROUTERS = _told.get("DATABASE_ROUTERS", [])
AGENT_MEMORY = {
    **settings.AGENT_MEMORY,
    "KEEP_LAST_TURNS": 3,
    "RESERVATION_SECONDS": 5,
    **_told.get("AGENT_MEMORY", {}),
}
