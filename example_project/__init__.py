"""A project that uses agent_memory: ``uv run manage.py demo``."""
