"""The weight map: every word, and the one error that lists everything."""

from types import SimpleNamespace

import pytest

from wherry.errors import ModelError
from wherry.models.arch import (
    Architecture,
    Pairs,
    concat,
    constant,
    drop,
    either,
    heads,
    plan,
    rename,
    reorder,
    split,
    stack,
    tie,
    transpose,
    unit_rows,
    unpack,
    unused_in,
)


def arch(*rules):
    return Architecture(name="toy", config=object, model=object, weights=rules)


def pieces(planned, name):
    parameter = next(p for p in planned.parameters if p.name == name)
    return (
        [(p.name, p.start, p.stop) for p in parameter.pieces],
        parameter.axis,
        parameter.transpose,
    )


QKV = concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight")


def test_concat_keeps_the_head_of_a_suffix():
    tensors = {
        f"model.layers.3.attn.{n}_proj.weight": (s, 8)
        for n, s in zip("qkv", (8, 4, 4), strict=True)
    }
    planned = plan(arch(QKV), {"model.layers.3.attn.qkv_proj.weight": (16, 8)}, tensors)
    assert pieces(planned, "model.layers.3.attn.qkv_proj.weight") == (
        [
            (f"model.layers.3.attn.{n}_proj.weight", 0, s)
            for n, s in zip("qkv", (8, 4, 4), strict=True)
        ],
        0,
        False,
    )


def test_a_suffix_begins_at_a_dot():
    planned = plan(
        arch(rename("norm.weight", "ln.weight")), {"my_norm.weight": (4,)}, {"my_norm.weight": (4,)}
    )
    assert pieces(planned, "my_norm.weight")[0] == [("my_norm.weight", 0, 4)]


def test_split_cuts_by_our_shapes_in_the_order_of_the_rule():
    rules = split("c_attn.weight", "q.weight", "k.weight", "v.weight", axis=1)
    params = {"h.0.v.weight": (8, 2), "h.0.q.weight": (8, 4), "h.0.k.weight": (8, 3)}
    planned = plan(arch(rules), params, {"h.0.c_attn.weight": (8, 9)})
    assert pieces(planned, "h.0.q.weight") == ([("h.0.c_attn.weight", 0, 4)], 1, False)
    assert pieces(planned, "h.0.k.weight")[0] == [("h.0.c_attn.weight", 4, 7)]
    assert pieces(planned, "h.0.v.weight")[0] == [("h.0.c_attn.weight", 7, 9)]


def test_transpose_and_stars_and_renames_compose():
    rules = (
        transpose("model.layers.*.fc.weight", "model.layers.*.c_fc.weight"),
        rename("model.layers.*", "model.h.*"),
        rename("model.*", "transformer.*"),
    )
    planned = plan(
        arch(*rules), {"model.layers.7.fc.weight": (6, 4)}, {"transformer.h.7.c_fc.weight": (4, 6)}
    )
    assert pieces(planned, "model.layers.7.fc.weight") == (
        [("transformer.h.7.c_fc.weight", 0, 6)],
        0,
        True,
    )


def test_some_checkpoints_have_another_name():
    rules = arch(rename("model.*", "net.*"), either("net.embed.weight", "net.embedding.weight"))
    params = {"model.embed.weight": (9, 4)}
    for name in ("net.embed.weight", "net.embedding.weight"):
        planned = plan(rules, params, {name: (9, 4)})
        assert pieces(planned, "model.embed.weight")[0] == [(name, 0, 9)]
    with pytest.raises(ModelError, match=r"missing: net.embed.weight, for model.embed.weight"):
        plan(rules, params, {"net.other.weight": (9, 4)})


def test_rows_have_another_order_in_some_layers():
    rules = reorder("layers.*.q.weight", lambda _: Pairs(4, 4), layers=lambda cfg: cfg.some)
    shapes = {f"layers.{i}.q.weight": (4, 2) for i in range(3)}
    planned = plan(arch(rules), shapes, shapes, SimpleNamespace(some=(1,)))
    orders = [p.pieces[0].order for p in planned.parameters]
    assert orders == [None, Pairs(4, 4), None]


TIE = tie("lm_head.weight", "model.embed.weight")
TIED, UNTIED = (SimpleNamespace(tie_word_embeddings=t) for t in (True, False))
HEAD, EMBED = {"lm_head.weight": (9, 4)}, {"model.embed.weight": (9, 4)}


def test_a_tied_head_is_read_from_the_embedding_only_if_the_checkpoint_has_none():
    assert pieces(plan(arch(TIE), HEAD | EMBED, EMBED, TIED), "lm_head.weight")[0] == [
        ("model.embed.weight", 0, 9)
    ]
    assert pieces(plan(arch(TIE), HEAD | EMBED, HEAD | EMBED, TIED), "lm_head.weight")[0] == [
        ("lm_head.weight", 0, 9)
    ]


def test_a_stored_copy_of_a_tied_head_has_to_be_compared():
    planned = plan(arch(TIE), EMBED, HEAD | EMBED, TIED)
    assert planned.equal == (("lm_head.weight", "model.embed.weight"),)
    assert planned.dropped == ("lm_head.weight",)


@pytest.mark.parametrize("config", [UNTIED, None])
def test_an_untied_model_needs_its_head(config):
    with pytest.raises(ModelError, match=r"missing: lm_head\.weight"):
        plan(arch(TIE), HEAD | EMBED, EMBED, config)
    with pytest.raises(ModelError, match=r"surplus: lm_head\.weight"):
        plan(arch(TIE), EMBED, HEAD | EMBED, config)


def test_drop_names_what_is_not_used():
    planned = plan(
        arch(drop("rotary_emb.inv_freq")), {"a": (1,)}, {"a": (1,), "l.0.rotary_emb.inv_freq": (4,)}
    )
    assert planned.dropped == ("l.0.rotary_emb.inv_freq",)


def test_one_error_lists_all_that_is_wrong():
    params = {"l.qkv_proj.weight": (16, 8), "norm.weight": (8,), "bias": (3,), "x": (2, 2)}
    tensors = {
        "l.q_proj.weight": (8, 8),
        "l.k_proj.weight": (4, 8),
        "norm.weight": (9,),
        "extra": (5, 5),
        "x": (2, 2),
    }
    with pytest.raises(ModelError) as caught:
        plan(arch(QKV), params, tensors)
    text = str(caught.value)
    assert "missing: l.v_proj.weight, for l.qkv_proj.weight [16, 8]" in text
    assert "missing: bias, for bias [3]" in text
    assert "misshapen: norm.weight expects [8] along axis 0, found norm.weight [9]" in text
    assert "surplus: extra [5, 5]" in text
    assert text.count("  - ") == 4


def test_a_wrong_sum_and_a_wrong_rank_are_misshapen():
    tensors = {"q_proj.weight": (8, 8), "k_proj.weight": (4, 8), "v_proj.weight": (4, 7)}
    with pytest.raises(ModelError, match="misshapen"):
        plan(arch(QKV), {"qkv_proj.weight": (16, 8)}, tensors)
    with pytest.raises(ModelError, match="misshapen"):
        plan(arch(split("c", "a", "b")), {"a": (2, 3), "b": (3, 3)}, {"c": (6, 3)})


def test_a_constant_takes_nothing_of_the_checkpoint():
    planned = plan(
        arch(constant("norm.weight", 1.0)), {"l.0.norm.weight": (4,), "a": (2,)}, {"a": (2,)}
    )
    assert (planned.parameters[0].constant, planned.parameters[0].pieces) == (1.0, ())
    with pytest.raises(ModelError, match=r"surplus: l\.0\.norm\.weight"):
        plan(
            arch(constant("norm.weight", 1.0)), {"l.0.norm.weight": (4,)}, {"l.0.norm.weight": (4,)}
        )


def test_rows_are_divided_by_their_lengths_if_the_configuration_says_so():
    rules = unit_rows("head.weight", when="normalised")
    for said in (True, False):
        config = SimpleNamespace(normalised=said)
        (planned,) = plan(
            arch(rules), {"head.weight": (3, 2)}, {"head.weight": (3, 2)}, config
        ).parameters
        assert planned.unit_rows is said


def test_a_checkpoint_may_leave_out_what_all_names_begin_with():
    params = {"model.a": (2,), "lm_head.weight": (3,)}
    for base in ("model.", ""):
        tensors = {f"{base}a": (2,), "lm_head.weight": (3,)}
        assert pieces(plan(arch(), params, tensors), "model.a")[0] == [(f"{base}a", 0, 2)]


ENCODER = SimpleNamespace(bidirectional=True)


@pytest.mark.parametrize("base", ["model.", ""])
def test_heads_that_an_encoder_does_not_use_are_listed(base):
    params = {"model.layers.0.a": (2,), "model.norm.weight": (2,)}
    tensors = {f"{base}layers.0.a": (2,), f"{base}norm.weight": (2,)}
    heads = {f"{base}pooler.weight": (2, 2), "qa_outputs.bias": (2,)}
    planned = plan(arch(), params, tensors | heads, ENCODER)
    assert planned.unused == planned.dropped == tuple(heads)
    with pytest.raises(ModelError, match=r"surplus: .*layers\.1\.a"):
        plan(arch(), params, tensors | {f"{base}layers.1.a": (2,)}, ENCODER)
    with pytest.raises(ModelError, match=r"surplus: qa_outputs\.bias"):
        plan(arch(), params, tensors | heads, TIED)


def test_older_names_of_norms():
    params = {"model.LayerNorm.weight": (2,), "model.LayerNorm.bias": (2,)}
    tensors = {"model.LayerNorm.gamma": (2,), "model.LayerNorm.beta": (2,)}
    planned = plan(arch(), params, tensors)
    assert [p.pieces[0].name for p in planned.parameters] == list(tensors)
    with pytest.raises(ModelError, match=r"surplus: model\.LayerNorm\.gamma"):
        plan(arch(), params, params | tensors)


def test_what_a_plan_says_of_itself_is_the_same_in_every_process():
    """It is part of the key by which converted weights are known: an address is none."""
    rules = heads("k_up.weight", "kv.weight", lambda cfg: (0, 2, 6), transposed=True)
    planned = plan(arch(rules), {"k_up.weight": (3, 8, 2)}, {"kv.weight": (18, 8)})
    assert "k_up.weight" in repr(planned) and " at 0x" not in repr(planned)


def test_tensors_that_some_layers_do_not_use():
    rules = unused_in("model.layers.*.k_proj.*", lambda cfg: cfg.shared)
    config = SimpleNamespace(shared=range(2, 4))
    tensors = {f"model.layers.{i}.k_proj.weight": (4, 4) for i in (0, 2)}
    params = {"model.layers.0.k_proj.weight": (4, 4)}
    assert plan(arch(rules), params, tensors, config).dropped == ("model.layers.2.k_proj.weight",)
    with pytest.raises(ModelError, match=r"surplus: model.layers.1.k_proj.weight"):
        plan(arch(rules), params, tensors | {"model.layers.1.k_proj.weight": (4, 4)}, config)


def test_vectors_of_heads_become_rows():
    rules = stack("q_norm.factors", "q_norm.norms.{}.weight")
    tensors = {f"a.q_norm.norms.{i}.weight": (8,) for i in range(3)}
    planned = plan(arch(rules), {"a.q_norm.factors": (3, 8)}, tensors)
    assert pieces(planned, "a.q_norm.factors")[0] == [(name, 0, 8) for name in tensors]
    assert planned.parameters[0].rows == (24,)


def test_experts_come_one_by_one_or_stacked():
    rules = stack("experts.up.weight", "experts.{}.up.weight", fused="experts.up")
    params = {"a.experts.up.weight": (3, 4, 2), "b.experts.up.weight": (3, 4, 2)}
    each = {f"a.experts.{i}.up.weight": (4, 2) for i in range(3)}
    fused = {"b.experts.up": (3, 4, 2)}
    planned = plan(arch(rules), params, each | fused)
    assert pieces(planned, "a.experts.up.weight")[0] == [(name, 0, 4) for name in each]
    assert pieces(planned, "b.experts.up.weight")[0] == [("b.experts.up", 0, 3)]
    assert [p.stacked for p in planned.parameters] == [True, False]
    with pytest.raises(ModelError, match=r"misshapen: b.experts.up.weight expects \[3, 4, 2\]"):
        plan(arch(rules), params, each | {"b.experts.up": (3, 2, 4)})
    with pytest.raises(ModelError, match=r"surplus: a.experts.0.up.weight \[4, 2\]"):
        plan(arch(rules), params, each | fused | {"a.experts.up": (3, 4, 2)})


def test_tensors_that_only_some_checkpoints_have_fused():
    """Rules with an alternative: the parts of a concatenation, experts one by one, and heads."""
    both = concat("up.weight", "a.weight", "b.weight", fused="w.weight")
    parts = {"a.weight": (2, 4), "b.weight": (3, 4)}
    assert pieces(plan(arch(both), {"up.weight": (5, 4)}, parts), "up.weight")[0] == [
        ("a.weight", 0, 2),
        ("b.weight", 0, 3),
    ]
    planned = plan(arch(both), {"up.weight": (5, 4)}, {"w.weight": (5, 4)})
    assert pieces(planned, "up.weight")[0] == [("w.weight", 0, 5)]

    packed = unpack("e.weight", "e", each=("{}.a.weight", "{}.b.weight"))
    params = {"e.weight": (2, 5, 4)}
    assert plan(arch(packed), params, {"e": (2, 4, 5)}).parameters[0].unpacked == packed
    each = {f"{i}.{name}": shape for i in (0, 1) for name, shape in parts.items()}
    (parameter,) = plan(arch(packed), params, each).parameters
    assert (parameter.unpacked, parameter.stacked) == (None, True)
    assert [p.name for p in parameter.pieces] == list(each)
    (parameter,) = plan(arch(packed), params, {"e": (2, 5, 4)}).parameters  # not transposed
    assert (parameter.unpacked, [p.name for p in parameter.pieces]) == (None, ["e"])
    square = plan(arch(packed), {"e.weight": (2, 4, 4)}, {"e": (2, 4, 4)})
    assert square.parameters[0].unpacked == packed
    with pytest.raises(ModelError, match=r"misshapen: e\.weight expects e \[2, 4, 5\], found"):
        plan(arch(packed), params, {"e": (2, 6, 4)})
    with pytest.raises(ModelError, match=r"missing: 0\.a\.weight, 0\.b\.weight, 1\.a"):
        plan(arch(packed), params, {})
    with pytest.raises(ModelError, match=r"e_blocks \[2, 5, 1, 16\]"):
        plan(arch(unpack("e.weight", "e")), params, {})

    rule = split("w.weight", "a.weight", "b.weight")
    (parameter, _) = plan(arch(rule), parts, parts).parameters
    assert [p.name for p in parameter.pieces] == ["a.weight"]

    rule = heads("up.weight", "kv.weight", lambda config: (0, 2, 5))
    assert plan(arch(rule), {"up.weight": (3, 2, 4)}, {"kv.weight": (15, 4)}).parameters[0].unpacked
    fused = {"up.weight": (3, 2, 4)}
    assert plan(arch(rule), fused, fused).parameters[0].unpacked is None


def test_names_of_another_checkpoint():
    planned = plan(arch(QKV), {"w": (2,)}, {"w": (2,)}).renamed({"w": "model.language_model.w"})
    assert pieces(planned, "w")[0] == [("model.language_model.w", 0, 2)]
