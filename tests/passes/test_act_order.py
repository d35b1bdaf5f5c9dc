"""Quantize: a linear whose matrix is stored with its columns in another order."""

from __future__ import annotations

import pytest
from tvm import relax, tirx
from tvm.ir import assert_structural_equal

from wherry.compiler.library.references import REFERENCES
from wherry.passes.quantize import Quantization, Quantize, stored_dtypes
from wherry.quant.plan import parts
from wherry.quant.scheme import find, record

ROWS, COLUMNS = 128, 64
BASE, ACT_ORDER = find("q4f16_1"), record("q4f16_1_ordered")


def module(variables, emit):
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n, COLUMNS], "float32"))
    v = [relax.Var(name, relax.TensorType(s, d)) for name, (s, d) in variables.items()]
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, *v], {"num_input": 1}):
        with builder.dataflow():
            out = builder.emit_output(emit(builder, n, x, v))
        builder.emit_func_output(out)
    return builder.get()


def before():
    def emit(builder, n, x, v):
        return relax.op.matmul(x, builder.emit(relax.op.permute_dims(v[0])))

    return module({"up.weight": ((ROWS, COLUMNS), "float32")}, emit)


def of(order, names, rows):
    """x in an order, times the matrices of some parts."""

    def emit(builder, n, x, v):
        products = []
        for at in order:
            taken = builder.emit(relax.op.take(x, v[at[-1]], axis=1, mode="clip"))
            func = builder.add_func(REFERENCES.linear(BASE, rows, COLUMNS, "float32"), "linear")
            ty = relax.TensorType([n, rows], "float32")
            call = relax.call_tir(func, [taken, *(v[i] for i in at[:-1])], out_ty=ty)
            products.append(call if len(order) == 1 else builder.emit(call))
        return products[0] if len(products) == 1 else relax.op.concat(products, axis=-1)

    return module(names, emit)


ORDER = ((COLUMNS,), "int32")


def stored(rows, name, where=""):
    words, scales = ((rows, COLUMNS // 8), "uint32"), ((rows, COLUMNS // 32), "float16")
    return {f"{name}.q_weight{where}": words, f"{name}.q_scale{where}": scales}


CASES = {
    "one order": (
        {"plan": {"up.weight": ACT_ORDER}},
        of([(0, 1, 2)], stored(ROWS, "up") | {"up.q_order": ORDER}, ROWS),
    ),
    "a matrix in two buffers has one order": (
        {"plan": {"up.weight": ACT_ORDER}, "most_bytes": ROWS * COLUMNS // 4},
        of(
            [(0, 1, 2), (3, 4, 2)],
            stored(64, "up", "[0:64]") | {"up.q_order": ORDER} | stored(64, "up", "[64:128]"),
            64,
        ),
    ),
    "two orders": (
        {"plan": {}, "own": {"up.weight": parts("up.weight", [(64, ACT_ORDER), (64, ACT_ORDER)])}},
        of(
            [(0, 1, 2), (3, 4, 5)],
            stored(64, "up.0")
            | {"up.0.q_order": ORDER}
            | stored(64, "up.1")
            | {"up.1.q_order": ORDER},
            64,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_x_is_reordered(case):
    fields, expected = CASES[case]
    quantization = Quantization(references=REFERENCES, **fields)
    assert_structural_equal(Quantize(quantization)(before()), expected)
    names = [v.name for v in expected["forward"].params[1:]]
    assert list(stored_dtypes(before(), quantization)) == names


def test_tvm_has_no_warning(capfd):
    """It printed "Fast mode segfaults when there are out-of-bounds indices"."""
    quantized = Quantize(Quantization(references=REFERENCES, plan={"up.weight": ACT_ORDER}))(
        before()
    )
    legal = relax.transform.LegalizeOps()(quantized)
    assert any("take" in g.name_hint for g in legal.get_global_vars())
    assert capfd.readouterr().err == ""
