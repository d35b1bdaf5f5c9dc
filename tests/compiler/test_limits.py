"""What a model is compiled for when nobody says it to the compiler."""

from __future__ import annotations

import pytest

from wherry.compiler.api import Limits


@pytest.mark.parametrize(
    ("asked", "limits"),
    [
        ({}, Limits()),
        ({"max_batch": 32, "prefill_chunk": 512}, Limits()),  # one compilation serves all of these
        ({"max_batch": 33}, Limits(max_batch=33)),
        ({"prefill_chunk": 513}, Limits(prefill_chunk=513)),
        ({"max_batch": 600}, Limits(max_batch=600, prefill_chunk=600)),  # a row for each
        ({"max_batch": 600, "prefill_chunk": 700}, Limits(max_batch=600, prefill_chunk=700)),
    ],
)
def test_it_holds_what_an_engine_asks_for(asked, limits):
    assert Limits.holding(**asked) == limits
