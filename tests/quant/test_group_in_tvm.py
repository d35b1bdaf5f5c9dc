"""The encoding against the same arithmetic done by TVM in the scheme's float type."""

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from wherry.quant.group import GROUPS


@pytest.mark.cpu
@pytest.mark.parametrize("scheme", [s for s in GROUPS if s.bits == 4], ids=lambda s: s.name)
def test_tvm_rounds_alike(scheme):
    rows, groups, dtype = 64, 8, scheme.float_dtype
    seven = tirx.const(7, dtype)
    w = te.placeholder((rows, groups, 32), dtype, name="w")
    r = te.reduce_axis((0, 32))
    largest = te.compute((rows, groups), lambda o, g: te.max(te.abs(w[o, g, r]), axis=r))
    scale = te.compute((rows, groups), lambda o, g: largest[o, g] / seven)
    q = te.compute(
        (rows, groups, 32),
        lambda o, g, i: tirx.min(
            tirx.max(tirx.round(w[o, g, i] / scale[o, g] + seven), tirx.const(0, dtype)),
            tirx.const(14, dtype),
        ).astype("uint32"),
    )
    func = te.create_prim_func([w, q, scale]).with_attr("global_symbol", "main")
    run = tvm.compile(tvm.IRModule({"main": func}), target="llvm")["main"]

    weights = np.random.default_rng(0).standard_normal((rows, groups * 32)).astype("f4") * 0.05
    made = (np.zeros((rows, groups, 32), "u4"), np.zeros((rows, groups), dtype))
    found = [tvm.runtime.tensor(a) for a in made]
    run(tvm.runtime.tensor(weights.reshape(rows, groups, 32).astype(dtype)), *found)
    words = (found[0].numpy().reshape(rows, -1, 8) << (4 * np.arange(8, dtype="u4"))).sum(-1)
    ours = scheme.encode(weights)
    np.testing.assert_array_equal(ours["q_weight"], words)
    np.testing.assert_array_equal(ours["q_scale"], found[1].numpy())
