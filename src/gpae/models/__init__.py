"""Trained models: what is fitted to data and holds state."""
