"""The mathematics: pure functions on tensors, no state, no files, no data frames."""
