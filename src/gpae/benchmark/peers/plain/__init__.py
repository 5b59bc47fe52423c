"""What the peers' own Python reads too: it knows nothing of gpae, NumPy and pandas are all that it has.

Ours imports this folder as a part of gpae, a peer's Python as a package of its own: here imports are relative.
"""
