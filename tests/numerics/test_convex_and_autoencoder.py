import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from gpae.numerics.autoencoder import AutoEncoder, encode, encode_with_jacobian
from gpae.numerics.convex import logistic, ridge
from gpae.numerics.fourier import draw_map
from gpae.numerics.placement import moved


def test_newton_steps_reach_scikit_learns_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X @ [1, -1, 0.5, 0, 0] + rng.normal(size=400) > 0.3).astype(float)
    v, bias = logistic(torch.tensor(X), torch.tensor(y), torch.ones(400, dtype=torch.float64), 1 / 400)
    peer = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(v.numpy(), peer.coef_[0], atol=1e-4)
    np.testing.assert_allclose(float(bias), peer.intercept_[0], atol=1e-4)


def test_ridge_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 4)), rng.normal(size=(100, 2))
    peer = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ridge(torch.tensor(X), torch.tensor(Y), 0.7).numpy(), peer.coef_.T, atol=1e-10)


def tiny_model() -> AutoEncoder:
    g = torch.Generator().manual_seed(0)
    return AutoEncoder(
        draw_map(30, 4, 1.0, g),
        torch.randn(30, 3, generator=g, dtype=torch.float64),
        draw_map(30, 3, 1.0, g),
        torch.randn(30, 4, generator=g, dtype=torch.float64),
        torch.randn(3, generator=g, dtype=torch.float64),
        torch.zeros((), dtype=torch.float64),
    )


def test_the_jacobian_is_that_of_automatic_differentiation() -> None:
    model = tiny_model()
    x = torch.rand(6, 4, dtype=torch.float64)
    latent, J = encode_with_jacobian(model, x)
    torch.testing.assert_close(latent, encode(model, x))
    for i in range(6):
        exact = torch.autograd.functional.jacobian(lambda z: encode(model, z.unsqueeze(0))[0], x[i])
        torch.testing.assert_close(J[i], exact)


def test_moving_a_model_changes_every_tensor_in_it() -> None:
    single = moved(tiny_model(), device="cpu", dtype=torch.float32)
    assert single.encoder.frequencies.dtype == single.theta0.dtype == torch.float32
