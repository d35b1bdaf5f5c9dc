"""What the graph makes of stored integers, against NumPy's decoder: every level, either sign."""

import numpy as np
import pytest
import tvm
from tvm import te

from wherry.quant.group import GROUPS


@pytest.mark.cpu
@pytest.mark.parametrize("scheme", GROUPS, ids=lambda s: s.name)
def test_the_graph_decodes_alike(scheme):
    rows, columns = 16, 96
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (rows, columns // scheme.per_word), "u4")
    scales = rng.standard_normal((rows, columns // 32)).astype(scheme.float_dtype)
    stored = {"q_weight": words, "q_scale": scales}
    tensors = [te.placeholder(a.shape, a.dtype.name, name) for name, a in stored.items()]
    w = te.compute((rows, columns), lambda o, i: scheme.element(tensors, o, i), "w")
    func = te.create_prim_func([*tensors, w]).with_attr("global_symbol", "main")
    run = tvm.compile(tvm.IRModule({"main": func}), target="llvm")["main"]
    decoded = tvm.runtime.tensor(np.zeros((rows, columns), "f4"))
    run(*(tvm.runtime.tensor(a) for a in stored.values()), decoded)
    np.testing.assert_array_equal(decoded.numpy(), scheme.decode(stored))
