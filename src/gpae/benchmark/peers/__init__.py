"""Peers, each in an environment of its own: scripts that such an environment's Python runs, and what talks to them."""
