"""FuseAttention: rotation, append and attention in one call, or with the linear before them."""

import pytest
from tvm import relax

from wherry.passes.fuse_attention import FuseAttention

from .fused import Target, calls, function

H, G, E = 2, 1, 4
WIDTH = (H + 2 * G) * E
TYPES = {  # of the arguments of `forward`
    "x": ((5, 8), "float32"),
    "weight": ((WIDTH, 8), "float32"),
    "positions": ((5,), "int32"),
    "sequences": ((5,), "int32"),
    "query_indptr": ((3,), "int32"),
    "page_indptr": ((3,), "int32"),
    "page_ids": ((7,), "int32"),
    "q_norm": ((E,), "float32"),
    "k_norm": ((E,), "float32"),
    "pages": ((9, 2, G, 16, E), "float32"),
    "more_pages": ((9, 2, G, 16, E), "float32"),
}
TABLE = ["positions", "sequences", "page_indptr", "page_ids"]


def before(norms=()):
    """Two layers of: a linear, rotation and append, attention."""
    v = {name: relax.Var(name, relax.TensorType(*ty)) for name, ty in TYPES.items()}
    builder = relax.BlockBuilder()
    with builder.function("forward", list(v.values())):
        with builder.dataflow():
            linear = builder.add_func(function("fused_linear", out=WIDTH), "linear")
            rope = builder.add_func(function("rope_append", heads=H), "rope")
            attention = builder.add_func(function("attention", scale=0.5), "attention")
            x, outputs = v["x"], []
            for pages in (v["pages"], v["more_pages"]):
                flat = relax.TensorType((5, WIDTH), "float32")
                qkv = builder.emit(relax.call_tir(linear, [x, v["weight"]], out_ty=flat))
                qkv = builder.emit(relax.op.reshape(qkv, (5, H + 2 * G, E)))
                args = [qkv, *(v[t] for t in TABLE), *(v[t] for t in norms), pages]
                heads = relax.TensorType((5, H, E), "float32")
                places = [len(args) - 1, -1]
                call = relax.call_tir_inplace(rope, relax.Tuple(args), places, [pages.ty, heads])
                pair = builder.emit(call)
                stored = builder.emit(relax.TupleGetItem(pair, 0))
                q = builder.emit(relax.TupleGetItem(pair, 1))
                rows = [v[t] for t in ("positions", "sequences", "query_indptr")]
                rows += [v["page_indptr"], v["page_ids"]]
                out = builder.emit(relax.call_tir(attention, [q, *rows, stored], out_ty=heads))
                outputs.append(out)
                x = builder.emit(relax.op.reshape(out, (5, 8)))
            out = builder.emit_output(relax.op.add(*outputs))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("norms", [(), ("q_norm", "k_norm")])
def test_rotation_append_and_attention_are_one_call(norms):
    size = lambda sizes: 100 * sizes["r"] + 10 * sizes["n"] + sizes["p"]  # noqa: E731
    table = {"scratch": (((size,), "int32"),)}
    target = Target(batch_table=table, paged_attention={"scratch": ((("n", 3), "float32"),)})
    fused = calls(FuseAttention(target)(before(norms)))
    ops = [op for op, _, _ in fused]
    layer = ["fused_linear", "paged_attention"]
    assert sorted(ops) == sorted(["batch_table", *layer, *layer, "add"])  # one table for all
    by_op = {op: (args, ty) for op, args, ty in fused}
    assert by_op["batch_table"][0] == [*TABLE[:2], "query_indptr", *TABLE[2:]]
    assert tuple(map(int, by_op["batch_table"][1].shape)) == (257,)  # r 2, n 5, p 7
    args, ty = by_op["paged_attention"]
    assert args[1:] == ["batch_table", "query_indptr", *norms, "more_pages"]
    shapes = [tuple(map(int, t.shape)) for t in ty.fields]
    assert shapes == [(9, 2, G, 16, E), (5, H, E), (5, 3)]  # the pages, the result, the scratch


def test_the_linear_goes_in_where_the_target_has_that():
    norms = ("q_norm", "k_norm")
    table = {"scratch": (((9,), "int32"),)}
    target = Target(batch_table=table, paged_attention={}, qkv_attention={"joined": True})
    fused = calls(FuseAttention(target)(before(norms)))
    by_op = {op: args for op, args, _ in fused}
    assert by_op.keys() == {"batch_table", "join_norms", "qkv_attention", "add"}
    assert by_op["join_norms"] == list(norms)
    assert by_op["qkv_attention"][1:] == [
        "weight",
        "batch_table",
        "query_indptr",
        "join_norms",
        "more_pages",
    ]


HAS_TABLE = {"batch_table": {"scratch": (((9,), "int32"),)}}


@pytest.mark.parametrize("answers", [{}, HAS_TABLE, {"paged_attention": {}}])
def test_what_the_target_has_not_stays(answers):
    ops = [op for op, _, _ in calls(FuseAttention(Target(**answers))(before()))]
    assert ops == ["fused_linear", "rope_append", "attention"] * 2 + ["add"]
