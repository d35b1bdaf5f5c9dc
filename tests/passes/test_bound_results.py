"""BoundResults: what is returned has a place as large as it can get, whatever its size is now."""

from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from wherry.passes.bound_results import BoundResults


@I.ir_module(check_well_formed=False)
class Before:
    @R.function(pure=False, check_well_formed=False)
    def forward(x: R.Tensor(("m", 8), "float16")):
        m = T.int64()
        R.func_attr({"tir_var_upper_bound": {"m": 64}})
        logits = R.builtin.alloc_tensor(R.shape([m * 2, 10]), R.dtype("float16"), 0, "global")
        call = R.call_packed("kernel", x, logits, ty_args=R.Tuple())
        return logits

    @R.function(pure=False, check_well_formed=False)
    def pack(x: R.Tensor((4, 8), "float16")):
        packed = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float16"), 0, "global")
        call = R.call_packed("kernel", x, packed, ty_args=R.Tuple())
        return packed


@I.ir_module(check_well_formed=False)
class Expected:
    @R.function(pure=False, check_well_formed=False)
    def forward(x: R.Tensor(("m", 8), "float16")):
        m = T.int64()
        R.func_attr({"tir_var_upper_bound": {"m": 64}})
        storage = R.memory.alloc_storage(R.shape([64 * 2 * 10 * 2]), 0, "global", "uint8")
        logits = R.memory.alloc_tensor(storage, 0, R.shape([m * 2, 10]), "float16", 0)
        call = R.call_packed("kernel", x, logits, ty_args=R.Tuple())
        return logits

    @R.function(pure=False, check_well_formed=False)
    def pack(x: R.Tensor((4, 8), "float16")):
        packed = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float16"), 0, "global")
        call = R.call_packed("kernel", x, packed, ty_args=R.Tuple())
        return packed


def test_before_and_after():
    assert_structural_equal(BoundResults()(Before), Expected, map_free_vars=True)


def test_a_size_without_a_bound_is_left():
    without = Before.clone()
    (var,) = [v for v in without.get_global_vars() if v.name_hint == "forward"]
    without.update_func(var, without[var].with_attr("tir_var_upper_bound", {"n": 3}))
    assert_structural_equal(BoundResults()(without), without)
