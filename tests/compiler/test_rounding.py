"""The measured change of weights that are encoded anew."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.compiler.rounding import Rounding
from wherry.quant.scheme import find


@pytest.mark.parametrize("scheme", ["q4f16_1", "q8f16_1", "q0f16"])
def test_a_sample_is_like_all_rows(scheme):
    own, rng, rounding = find(scheme), np.random.default_rng(0), Rounding()
    error = power = 0.0
    for rows in (256, 100, 5):
        w = (rng.standard_normal((rows, 96)) * rng.uniform(0.5, 2)).astype(np.float32)
        stored = own.encode(w)
        rounding.add(own, w, stored, 96)
        error += float(np.square(own.decode(stored, 96) - w).sum())
        power += float(np.square(w).sum())
    assert rounding.relative == pytest.approx(np.sqrt(error / power), rel=0.1)


def test_nothing_is_no_change():
    assert Rounding().relative == 0
    rounding = Rounding()
    own, w = find("q0f32"), np.ones((3, 4), np.float32)
    rounding.add(own, w, own.encode(w), 4)
    assert rounding.relative == 0
