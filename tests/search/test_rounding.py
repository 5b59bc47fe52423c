"""The rounding inside a search agrees with the exact one of the layout."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import loans

from gpae.search.rounding import Rounding
from gpae.table.codec import Codec
from gpae.table.schema import Continuous, Schema


def with_codes(n: int) -> pd.DataFrame:
    """Loans with a column of whole amounts that holds -9 and -7 for states, and a share that may be -9."""
    rng = np.random.default_rng(1)
    frame = loans(n)
    frame["months"] = np.where(rng.random(n) < 0.3, rng.choice([-9, -7], n), rng.integers(0, 40, n))
    frame["share"] = np.where(rng.random(n) < 0.3, -9.0, rng.random(n))
    return frame


@pytest.mark.parametrize("switch", ["on", "off"])
@pytest.mark.parametrize("fixed", [(), ("months", "job", "share")])
def test_the_row_that_is_judged_is_the_row_that_is_returned(
    fixed: tuple[str, ...], switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPAE_KERNELS", switch)
    frame = with_codes(400)
    schema = Schema.infer(frame, label="granted", favourable="yes")
    share = Continuous(name="share", minimum=0.0, maximum=1.0, codes=(-9.0,))
    features = tuple(share if feature.name == "share" else feature for feature in schema.features)
    codec = Codec.fit(frame, schema.model_copy(update={"features": features}))
    layout, x = codec.layout, codec.encode(frame).rows
    assert [len(block.grid.codes) for block in layout.features if block.name in ("months", "share")] == [2, 1]
    lower, upper = layout.box(x, layout.named(fixed))
    reach = np.random.default_rng(0).choice([0.02, 0.3, 1.5], (400, 1))
    u = x + reach * np.random.default_rng(2).normal(size=x.shape)
    rounding, parts = Rounding.of(layout, torch.float64), [torch.as_tensor(part) for part in (u, x, lower, upper)]
    assert switch == "on" or rounding.exact is None
    rounded = rounding(*parts).numpy()
    exact = layout.snap(u, x, lower, upper)
    # halfway between two steps either is right
    away = np.abs(rounded - exact).max(axis=0)
    assert (away[np.isin(layout.column_names, ("months", "share"))] < 1e-9).all()
    assert np.mean(np.abs(rounded - exact) > 1e-9) < 1e-3
    np.testing.assert_allclose(layout.snap(rounded, x, lower, upper), rounded, atol=1e-9)
    single = Rounding.of(layout)(parts[0].float(), *parts[1:])
    assert single.dtype == torch.float32
    assert np.mean(np.abs(single.numpy() - exact) > 1e-6) < 2e-3
