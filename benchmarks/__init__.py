"""Measurements, as ratios taken side by side in one run: ``uv run python -m benchmarks.titles``."""
