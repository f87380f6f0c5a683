"""The suite's settings in a process of its own, on the database that the suite is using."""

import json
import os

from tests.settings import *  # noqa: F403  settings are modules
from tests.settings import DATABASES

DATABASES["default"] |= json.loads(os.environ["FAULTS_DATABASE"])
