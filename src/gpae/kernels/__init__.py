"""The search's inner loop for the machine at hand: compiled for its processor, with a way around it everywhere."""
