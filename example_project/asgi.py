"""The example project as an ASGI application; while ``DEBUG`` is on it serves static files."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application: Any = get_asgi_application()
if settings.DEBUG:
    application = ASGIStaticFilesHandler(application)
