"""Models on loopback or elsewhere, and what is sent to them."""
