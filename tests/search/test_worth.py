"""What a plan costs: the same however tables lie in memory, and whoever else is priced."""

import numpy as np
from tests.search.test_repair import freedom, shaken

from gpae.search.neighbourhood import Surroundings
from gpae.search.worth import TASTES, Worth


def test_a_plan_costs_the_same_alone_and_however_tables_lie() -> None:
    given = freedom([], n=60)
    plans = shaken(given)
    everyone = np.arange(len(given))
    scale = np.linspace(0.3, 3.0, plans.shape[1])
    around = Surroundings.of(given.x[::2], scale)
    worth = Worth(given, around.near(given.x, 8), TASTES["plausible"])
    together = worth.way(everyone, np.ascontiguousarray(plans))
    assert len(set(together.tolist())) > 30
    np.testing.assert_array_equal(worth.way(everyone, np.asfortranarray(plans)), together)
    for row in everyone:
        np.testing.assert_array_equal(worth.way(everyone[[row]], plans[[row]]), together[[row]])
