"""Figures of one answer, of the latent density and of the choice of beta."""
