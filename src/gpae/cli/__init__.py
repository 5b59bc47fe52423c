"""The command line, one file a command; nothing here loads PyTorch before a command needs it."""

from gpae.cli.entry import app, main

__all__ = ["app", "main"]
