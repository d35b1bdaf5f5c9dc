"""RecurrentState: keep the state of recurrent operations in slots, which the engine assigns.

    def forward(tokens, ..., query_indptr, logit_rows, w):
      y = call_dps_packed("wherry.recurrence", ("short_conv", spec, x, sequences, query_indptr, w))

    def forward(tokens, ..., query_indptr, slots, logit_rows, slot_state_0, w):
      slot_state_0, y = short_conv(x, sequences, query_indptr, w, slots, slot_state_0)

Runs in the attach phase, after PagedKV. Each call owns one float32 tensor [slots, *state_shape],
which it updates in place; sequence s of the step has the state of slots[s]. A model without such
calls stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm import IRModule, ir, relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops.recurrent import RECURRENT
from wherry.ops.tags import RECURRENCE

from .kernels import rewritten
from .references.recurrent import REFERENCES

CALL = ir.Op.get("relax.call_dps_packed")
SLOTS = "slots"  # name of the argument, and of the input in a library's metadata
SIZE = "r0"  # symbolic size of the argument: the number of sequences
DTYPE = "float32"  # of every recurrent state


@dataclass(frozen=True, slots=True)
class SlotState:
    """Recurrent operations whose states have the same shape."""

    calls: tuple[int, ...]  # which calls of `forward`, counted from 0
    shape: tuple[int, ...]  # shape of one slot of one call


def slot_states(mod: IRModule) -> tuple[SlotState, ...]:
    """Return the states that `forward` needs, in the order of the tensors among its arguments."""
    calls_by_shape: dict[tuple[int, ...], list[int]] = {}
    for i, call in enumerate(_recurrences(mod)):
        calls_by_shape.setdefault(_spec(call).state_shape, []).append(i)
    return tuple(SlotState(tuple(calls), shape) for shape, calls in calls_by_shape.items())


def _recurrences(mod: IRModule) -> Iterator[relax.Call]:
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            if _is_recurrence(binding.value):
                yield binding.value


def _is_recurrence(expr: relax.Expr) -> bool:
    is_call = isinstance(expr, relax.Call) and expr.op == CALL
    return is_call and str(expr.args[0].global_symbol) == RECURRENCE


def _spec(call: relax.Call) -> Any:
    name, spec, *_ = call.args[1].fields
    return RECURRENT[str(name.value)].from_json(str(spec.value))


@ir.transform.module_pass(opt_level=0, name="RecurrentState")
class RecurrentState:
    """Pass that gives each recurrent operation a tensor of states, and `forward` the slots."""

    def __init__(self, states: tuple[SlotState, ...]) -> None:
        self.states = states

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite `forward`."""
        if not self.states:
            return mod
        (var,) = [v for v in mod.get_global_vars() if v.name_hint == "forward"]
        slots = relax.Var(SLOTS, relax.TensorType([tirx.Var(SIZE, "int64")], "int32"))
        count = tirx.Var("slots", "int64")
        states = {
            call: relax.Var(f"slot_state_{call}", relax.TensorType([count, *own.shape], DTYPE))
            for own in self.states
            for call in own.calls
        }
        added = _added(mod[var], slots, list(states.values()))
        # A variable of its own: `var` keeps its type, against which calls would be checked.
        forward = ir.GlobalVar(var.name_hint)
        relax.expr._update_type(forward, added.ty)
        others = {v: f for v, f in mod.functions_items() if v != var}
        mod = IRModule({**others, forward: added}, attrs=mod.attrs, global_infos=mod.global_infos)
        return rewritten(mod, _Rewriter(mod, slots, states))


def _added(func: relax.Function, slots: relax.Var, states: list[relax.Var]) -> relax.Function:
    """Return `func` with the slots before the logit rows, and the states as its last inputs."""
    first_weight = int(func.attrs["num_input"])
    inputs = list(func.params[:first_weight])
    (place,) = [i for i, param in enumerate(inputs) if param.name == "logit_rows"]
    inputs = [*inputs[:place], slots, *inputs[place:], *states]
    params = [*inputs, *func.params[first_weight:]]
    extended = relax.Function(params, func.body, func.ret_ty, func.is_pure, func.attrs)
    return extended.with_attr("num_input", len(inputs))


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, slots: relax.Var, states: dict[int, relax.Var]) -> None:
        super().__init__(mod)
        self.slots = slots
        self.states = states
        self.calls = 0  # number of calls so far

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        if not _is_recurrence(call):
            return call
        name = str(call.args[1].fields[0].value)
        state = self.states[self.calls]
        self.calls += 1
        args = [*call.args[1].fields[2:], self.slots, state]
        var = self.builder_.add_func(REFERENCES[name](_spec(call)), name)
        types = [state.ty, call.ty_args[0]]
        places = [len(args) - 1, -1]
        both = self.builder_.emit(relax.call_tir_inplace(var, relax.Tuple(args), places, types))
        return relax.TupleGetItem(both, 1)
