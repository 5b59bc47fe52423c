"""What recourse promises, measured: any model, several plans, proofs, deadlines, survival."""
