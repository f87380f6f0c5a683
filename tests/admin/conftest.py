"""Fixtures of the admin's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.contenttypes.models import ContentType


@pytest.fixture
def customers() -> Iterator[ContentType]:
    """Make the content type of a model that is not installed."""
    yield ContentType.objects.create(app_label="shop", model="customer")
    ContentType.objects.clear_cache()
