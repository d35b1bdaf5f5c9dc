"""What the tests of the fusing passes share: tagged functions, a target's answers, a listing."""

from __future__ import annotations

import json
from typing import Any

from tvm import relax, te

from wherry.ops.tags import tag, tag_of
from wherry.passes.kernels import is_tir_call
from wherry.targets.kernels import FusedKernel


def function(op: str | None = None, **spec: Any) -> Any:
    """A PrimFunc; what it computes and takes means nothing to the passes, its tag does."""
    x = te.placeholder((4,), "float32", "x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i])]).without_attr("global_symbol")
    return func if op is None else tag(func, op, spec)


class Target:
    """A target that has some fused kernels, of the specs that `accepts` likes."""

    def __init__(self, accepts=lambda op, spec: True, **answers: dict[str, Any]) -> None:
        self.accepts, self.answers = accepts, answers

    def kernel(self, op: str, spec: str) -> FusedKernel | None:
        if op not in self.answers or not self.accepts(op, json.loads(spec)):
            return None
        return FusedKernel(compute=function(op, spec=spec), **self.answers[op])

    def schedule(self, func: Any) -> Any:
        raise AssertionError("a fuse phase schedules nothing")


def calls(mod: Any) -> list[tuple[str, list[str], Any]]:
    """(operation, names of the arguments, type) of each call in `forward`; views are left out."""
    names: dict[Any, str] = {p: p.name for p in mod["forward"].params}
    listed: list[tuple[str, list[str], Any]] = []
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.TupleGetItem):
                names[binding.var] = f"{names[value.tuple_value]}[{value.index}]"
                continue
            assert isinstance(value, relax.Call), value
            if is_tir_call(value):
                tagged = tag_of(mod[value.args[0]])
                op = value.args[0].name_hint if tagged is None else tagged[0]
                args = list(value.args[1].fields)
            else:
                op, args = value.op.name.split(".")[-1], list(value.args)
            named = [names[a] for a in args if isinstance(a, relax.Var)]
            names[binding.var] = op
            if op != "reshape":
                listed.append((op, named, binding.var.ty))
    return listed


def specs(mod: Any, op: str) -> list[dict[str, Any]]:
    """Of the functions of an operation that `forward` calls."""
    tagged = [
        tag_of(mod[binding.value.args[0]])
        for block in mod["forward"].body.blocks
        for binding in block.bindings
        if is_tir_call(binding.value)
    ]
    return [json.loads(t[1]) for t in tagged if t is not None and t[0] == op]
