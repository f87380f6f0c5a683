"""The example's app: an agent that remembers, its views and its commands."""
