"""SplitEntries: a function for each result, with the parameters of all and the work of its own."""

import pytest
from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R

from wherry.passes.split_entries import SplitEntries


@I.ir_module
class Before:
    @R.function
    def forward(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1, "global_symbol": "forward"})
        a = R.sin(x)
        y = R.multiply(a, w)
        z = R.cos(a)
        both = (y, z)
        return both

    @R.function
    def pack(w: R.Tensor((4,), "float32")):
        v = R.exp(w)
        return v


@I.ir_module
class Expected:
    @R.function
    def forward(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1, "global_symbol": "forward"})
        a = R.sin(x)
        y = R.multiply(a, w)
        return y

    @R.function
    def embed(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1, "global_symbol": "embed"})
        a = R.sin(x)
        z = R.cos(a)
        return z

    @R.function
    def pack(w: R.Tensor((4,), "float32")):
        v = R.exp(w)
        return v


def test_before_and_after():
    assert_structural_equal(SplitEntries(("forward", "embed"))(Before), Expected)


def test_one_entry_of_another_name():
    alone = Expected.clone()
    del alone["embed"]
    split = SplitEntries(("embed",))(alone)
    assert {v.name_hint for v in split.get_global_vars()} == {"embed", "pack"}
    assert split["embed"].attrs["global_symbol"] == "embed"
    assert_structural_equal(split["embed"].body, Expected["forward"].body, map_free_vars=True)


def test_the_usual_entry_stays():
    assert_structural_equal(SplitEntries(("forward",))(Expected), Expected)


def test_as_many_names_as_results():
    with pytest.raises(AssertionError):
        SplitEntries(("forward", "embed", "third"))(Before)
