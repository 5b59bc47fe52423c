from dataclasses import replace

import numpy as np
import pandas as pd
from tests.conftest import SMALL

from gpae import TabularExplainer
from gpae.models.density_weight import BETA_GRID, PAPER_GRID


def test_the_chosen_beta_is_where_the_divergence_is_least(explainer: TabularExplainer) -> None:
    choice = explainer.method_.density_weight_
    assert choice.beta == choice.grid[np.argmin(choice.divergence)] == explainer.method_.beta_
    assert set(PAPER_GRID) <= set(BETA_GRID) == set(choice.grid)


def test_a_minimum_at_the_edge_of_the_grid_is_not_interior(explainer: TabularExplainer) -> None:
    choice = explainer.method_.density_weight_
    inside = [replace(choice, beta=float(beta)).interior for beta in choice.grid]
    assert inside == [False] + [True] * (len(choice.grid) - 2) + [False]


def test_where_nobody_reaches_the_boundary_the_first_beta_of_the_grid_stands_in(table: pd.DataFrame) -> None:
    names = [name for name in table.columns if name != "granted"]
    frozen = TabularExplainer(label="granted", favourable="yes", immutable=names, beta_grid=(0.3, 0.5), **SMALL)
    method = frozen.fit(table).method_
    assert method.beta_ == 0.3
    assert method.density_weight_ is None
    assert frozen.explain(table.head(3)).summary().get("found", 0) == 0


def test_counterfactuals_lie_on_the_boundary_at_every_beta(explainer: TabularExplainer) -> None:
    choice, model = explainer.method_.density_weight_, explainer.method_.classifier_.model_
    g = choice.latents @ model.theta.numpy() + float(model.theta0)
    found = ~np.isnan(g)
    assert found.mean() > 0.98
    np.testing.assert_allclose(g[found], explainer.method_.margin_, rtol=0.02)


def test_a_heavier_density_gathers_the_counterfactuals(explainer: TabularExplainer) -> None:
    latents = explainer.method_.density_weight_.latents
    spread = [np.nanstd(at_beta, axis=0).sum() for at_beta in latents]
    assert spread[-1] < spread[0]


def test_beta_can_be_given_and_the_literal_estimate_asked_for(table) -> None:
    given = TabularExplainer(label="granted", favourable="yes", beta=0.3, **SMALL).fit(table)
    assert given.method_.beta_ == 0.3
    assert given.method_.density_weight_ is None
    literal = TabularExplainer(label="granted", favourable="yes", divergence="literal", **SMALL).fit(table)
    corrected = TabularExplainer(label="granted", favourable="yes", **SMALL).fit(table)
    difference = literal.method_.density_weight_.divergence - corrected.method_.density_weight_.divergence
    # another estimate, not the same one shifted by the normaliser that Algorithm 3 leaves out
    assert np.ptp(difference) > 0.01
