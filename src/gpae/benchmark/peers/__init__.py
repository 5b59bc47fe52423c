"""Peers, each in an environment of its own: scripts that such an environment's Python runs, files in and files out."""
