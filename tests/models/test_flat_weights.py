"""Weights as one vector: moved as torch's Adam moves them, wherever they lie."""

import pytest
import torch
from torch import nn

from gpae.models import class_autoencoders
from gpae.models.flat_weights import FlatWeights


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 1))


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_steps_are_those_of_torch(decay: float, clip_norm: float | None) -> None:
    mine, theirs = network(), network()
    flat = FlatWeights(list(mine.parameters()), 0.01, decay=decay, clip_norm=clip_norm)
    adam = torch.optim.Adam(theirs.parameters(), 0.01, weight_decay=decay)
    for step in range(30):
        x = torch.randn(20, 3, generator=torch.Generator().manual_seed(step))
        (mine(x) - x.sum(1, keepdim=True)).square().mean().backward()
        flat.step()
        adam.zero_grad()
        (theirs(x) - x.sum(1, keepdim=True)).square().mean().backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm)
        adam.step()
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_every_part_begins_where_memory_of_its_own_would() -> None:
    made = network()
    before = [part.detach().clone() for part in made.parameters()]
    flat = FlatWeights(list(made.parameters()), 0.01)
    for part, value in zip(made.parameters(), before, strict=True):
        assert (part == value).all()
        assert (part.data_ptr() - flat.values.data_ptr()) % 64 == 0
        assert part.grad is not None


def test_the_gradient_of_the_class_autoencoders_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    layers = class_autoencoders._random_layers((9, 20, 10, 4, 10, 20, 9), generator)
    parts = [part for layer in layers for part in layer]
    FlatWeights(parts, 0.01)
    batch = torch.randn(3, 16, 9, generator=generator)
    class_autoencoders._set_gradient(layers, batch)
    copies = [(weight.clone().requires_grad_(), bias.clone().requires_grad_()) for weight, bias in layers]
    x = batch
    for i, (weight, bias) in enumerate(copies):
        x = torch.baddbmm(bias, x, weight)
        x = x if i in (2, 5) else torch.relu(x)
    (x - batch).square().sum(2).mean(1).sum().backward()
    for part, copy in zip(parts, (part for layer in copies for part in layer), strict=True):
        assert part.grad is not None
        assert copy.grad is not None
        torch.testing.assert_close(part.grad, copy.grad)
