"""ShareTensors: one object for the same bytes; what is returned stays apart."""

from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R

from wherry.passes.share_tensors import ShareTensors


@I.ir_module(check_well_formed=False)
class Before:
    @R.function(pure=False, check_well_formed=False)
    def forward(x: R.Tensor((4, 8), "float32")):
        place = R.memory.alloc_storage(R.shape([256]), 0, "global", "float32")
        a = R.memory.alloc_tensor(place, 0, R.shape([4, 8]), "float32")
        call0 = R.call_packed("kernel", x, a, ty_args=R.Tuple())
        both = (a, x)
        first = both[0]
        view = R.reshape(first, R.shape([8, 4]))
        call1 = R.call_packed("kernel", view, x, ty_args=R.Tuple())
        b = R.memory.alloc_tensor(place, 0, R.shape([4, 8]), "float32")
        again = R.reshape(b, R.shape([8, 4]))
        call2 = R.call_packed("kernel", again, b, ty_args=R.Tuple())
        other = R.memory.alloc_tensor(place, 128, R.shape([4, 8]), "float32")
        call3 = R.call_packed("kernel", b, other, ty_args=R.Tuple())
        result = R.memory.alloc_tensor(place, 0, R.shape([4, 8]), "float32")
        call4 = R.call_packed("kernel", other, result, ty_args=R.Tuple())
        return result


@I.ir_module(check_well_formed=False)
class Expected:
    @R.function(pure=False, check_well_formed=False)
    def forward(x: R.Tensor((4, 8), "float32")):
        place = R.memory.alloc_storage(R.shape([256]), 0, "global", "float32")
        a = R.memory.alloc_tensor(place, 0, R.shape([4, 8]), "float32")
        call0 = R.call_packed("kernel", x, a, ty_args=R.Tuple())
        both = (a, x)
        view = R.reshape(a, R.shape([8, 4]))
        call1 = R.call_packed("kernel", view, x, ty_args=R.Tuple())
        call2 = R.call_packed("kernel", view, a, ty_args=R.Tuple())
        other = R.memory.alloc_tensor(place, 128, R.shape([4, 8]), "float32")
        call3 = R.call_packed("kernel", a, other, ty_args=R.Tuple())
        result = R.memory.alloc_tensor(place, 0, R.shape([4, 8]), "float32")
        call4 = R.call_packed("kernel", other, result, ty_args=R.Tuple())
        return result


def test_before_and_after():
    assert_structural_equal(ShareTensors()(Before), Expected, map_free_vars=True)


def test_twice_changes_nothing_more():
    assert_structural_equal(ShareTensors()(Expected), Expected, map_free_vars=True)
