"""Run Django's commands for the example project; try ``uv run manage.py demo``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"{error}. Run this with 'uv run manage.py ...', or install the project first: "
            "'pip install -e .'"
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
