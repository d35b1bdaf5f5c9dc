"""The limits of a compilation without explicit ones."""

from __future__ import annotations

import pytest

from wherry.compiler.api import Limits
from wherry.compiler.library.build import Deployment
from wherry.targets.target import find


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, Limits()),
        ({"max_batch": 32, "prefill_chunk": 512}, Limits()),  # one compilation serves all of these
        ({"max_batch": 33}, Limits(max_batch=33)),
        ({"prefill_chunk": 513}, Limits(prefill_chunk=513)),
        ({"max_batch": 600}, Limits(max_batch=600, prefill_chunk=600)),  # a row for each
        ({"max_batch": 600, "prefill_chunk": 700}, Limits(max_batch=600, prefill_chunk=700)),
    ],
)
def test_it_holds_what_an_engine_asks_for(options, limits):
    assert Limits.holding(**options) == limits


def test_the_manifest_says_what_was_chosen():
    target = find("cpu:x86-64-v3").with_kv_dtype("int8")
    said = Deployment(context=512).record(target, longest=2048)
    chosen = {"longest": 2048, "kv_dtype": "int8", "activations": "int8"}
    assert chosen.items() <= said.items() and said["context"] == 512
