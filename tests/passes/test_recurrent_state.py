"""RecurrentState: slots and states among the arguments, a tensor for each call."""

from __future__ import annotations

from tvm import relax, tirx
from tvm.ir import StringImm

from wherry.ops import ShortConvSpec
from wherry.ops.tags import RECURRENCE, tag_of
from wherry.passes.recurrent_state import RecurrentState, SlotState, slot_states

NARROW = ShortConvSpec(channels=8, taps=4)
OTHER = ShortConvSpec(channels=8, taps=3)


def program(*specs):
    """`forward(x, sequences, query_indptr, logit_rows, weights...)`, one call after the other."""
    n, r1, m = (tirx.Var(name, "int64") for name in ("n", "r1", "m"))
    x = relax.Var("x", relax.TensorType([n, 8], "float32"))
    rows = [
        relax.Var(name, relax.TensorType([size], "int32"))
        for name, size in (("sequences", n), ("query_indptr", r1), ("logit_rows", m))
    ]
    weights = [
        relax.Var(f"w{i}", relax.TensorType([spec.taps, 8], "float32"))
        for i, spec in enumerate(specs)
    ]
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, *rows, *weights], {"num_input": 4}):
        with builder.dataflow():
            y = x
            for spec, weight in zip(specs, weights, strict=True):
                texts = [StringImm("short_conv"), StringImm(spec.to_json())]
                args = relax.Tuple([*texts, y, *rows[:2], weight])
                y = builder.emit(relax.call_dps_packed(RECURRENCE, args, out_ty=x.ty))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    return builder.get()


def test_each_call_gets_a_state_of_its_own():
    mod = program(NARROW, OTHER, NARROW)
    states = slot_states(mod)
    assert states == (SlotState((0, 2), (3, 8)), SlotState((1,), (2, 8)))
    rewritten = RecurrentState(states)(mod)
    names = [param.name for param in rewritten["forward"].params]
    states_of = ["slot_state_0", "slot_state_2", "slot_state_1"]
    arrays = ["x", "sequences", "query_indptr", "slots", "logit_rows"]
    assert names == [*arrays, *states_of, "w0", "w1", "w2"]
    assert int(rewritten["forward"].attrs["num_input"]) == 8
    calls = [
        binding.value
        for block in rewritten["forward"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]
    read = [(call.args[1].fields[-1].name, tag_of(rewritten[call.args[0]])) for call in calls]
    specs = (NARROW, OTHER, NARROW)
    assert read == [
        (f"slot_state_{i}", ("short_conv", spec.to_json())) for i, spec in enumerate(specs)
    ]
    # In place: the state is an argument and the first result.
    assert [list(map(int, call.attrs.inplace_indices)) for call in calls] == [[5, -1]] * 3


def test_a_model_without_recurrent_layers_stays():
    mod = program()
    assert slot_states(mod) == ()
    assert RecurrentState(())(mod).same_as(mod)
