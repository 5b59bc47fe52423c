"""Proofs that there is no way: what no search can give."""
