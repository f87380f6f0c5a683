"""
Settings of the example project.

Read from the environment: ``AGENT_MODEL`` (the model's name), ``EXAMPLE_DATABASE``
(the SQLite file), ``DJANGO_DEBUG`` (``0`` turns debugging off),
``DJANGO_SECRET_KEY`` and ``DJANGO_ALLOWED_HOSTS`` (needed then). The ``openai``
client reads ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` itself; with neither a
stand-in, which is no language model, answers. The commands read
``AGENT_MAX_OUTPUT_TOKENS`` (none is no limit).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = os.environ.get("DJANGO_DEBUG", "1") == "1"
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or ("django-insecure-example" if DEBUG else "")
ALLOWED_HOSTS = os.environ.get("DJANGO_ALLOWED_HOSTS", "").split() or (
    ["localhost", "127.0.0.1", "[::1]"] if DEBUG else []
)
# Over plain HTTP a browser keeps no secure cookie, so these follow DEBUG.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not DEBUG

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "agent_memory",
    "example_project.chat",
]

AGENT_MEMORY: dict[str, Any] = {
    "MODEL": os.environ.get("AGENT_MODEL", "gpt-5-mini"),
    "VERIFY_OWNERSHIP": True,
}
if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
    AGENT_MEMORY["PROVIDER"] = "example_project.endpoints.stand_in.StandInProvider"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("EXAMPLE_DATABASE") or BASE_DIR / "db.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

if VERSION >= (6, 0):
    from django.utils.csp import CSP

    MIDDLEWARE.insert(1, "django.middleware.csp.ContentSecurityPolicyMiddleware")
    SECURE_CSP = {
        "default-src": [CSP.SELF],
        "img-src": [CSP.SELF, "blob:"],  # blob: previews of files that are about to be sent
        "object-src": [CSP.NONE],
        "base-uri": [CSP.NONE],
        "form-action": [CSP.SELF],
        "frame-ancestors": [CSP.NONE],
    }

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

ROOT_URLCONF = "example_project.urls"
ASGI_APPLICATION = "example_project.asgi.application"
WSGI_APPLICATION = "example_project.wsgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "chat:page"
LOGOUT_REDIRECT_URL = "login"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "build" / "static"
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
