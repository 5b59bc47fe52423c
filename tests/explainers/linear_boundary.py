"""A classifier whose boundary is a plane that can be written down."""

import math

import numpy as np
import pandas as pd
import torch

from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.fourier import FourierMap
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

_BEND = 0.1


def plane_classifier(weights: list[float], offset: float) -> GPAEClassifier:
    """g(x) = sin(e (w'x - b)) / e with a small e: next to linear, and 0 exactly on the plane w'x = b."""
    w = torch.tensor([weights], dtype=torch.float64)
    phase = torch.tensor([-math.pi / 2 - _BEND * offset], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    model = GPAEClassifier(latent_dim=1, n_features=1)
    model.model_ = AutoEncoder(
        encoder=FourierMap(_BEND * w, phase),
        encoder_weights=one[:, None] / (_BEND * math.sqrt(2)),
        decoder=FourierMap(one[:, None], one),
        decoder_weights=torch.zeros(1, w.shape[1], dtype=torch.float64),
        theta=one,
        theta0=torch.zeros((), dtype=torch.float64),
    )
    model.classes_, model.n_features_in_ = np.array([0, 1]), w.shape[1]
    return model


def square(n: int, seed: int = 0) -> tuple[np.ndarray, Layout]:
    """Rows of two numbers, evenly spread over the unit square, and their layout."""
    frame = pd.DataFrame(np.random.default_rng(seed).random((n, 2)), columns=["a", "b"])
    frame["y"] = (frame.a > 0.5).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    return codec.encode(frame).rows, codec.layout
