"""Tags that name an operation inside of a module, for models, schemes and passes; without TVM.

An operation is a `call_tir` to a PrimFunc with two attributes: `wherry.op`, its name, and
`wherry.spec`, its static parameters as JSON. The PrimFunc itself is a reference implementation; a
target may have a better one with the same signature.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .record import Record

OP = "wherry.op"
SPEC = "wherry.spec"
# Name of the call that stands for attention, with a spec (JSON), rows and weights, until the pass
# `PagedKV` replaces it.
CACHED_ATTENTION = "wherry.attention"
# Names of the calls that write and read what a multi-token prediction block knows of a row, until
# the pass `PagedKV` replaces them: (x, positions, sequences) -> x, which is now kept, and
# (positions, sequences[, a kept x]) -> what is kept of each row's predecessor.
KEEP_HIDDEN, KEPT_HIDDEN = "wherry.keep_hidden", "wherry.kept_hidden"
# Name of the call that stands for an operation with a recurrent state until the pass
# `RecurrentState` replaces it: the operation's name, its spec (JSON), and its arguments.
RECURRENCE = "wherry.recurrence"
PACK = "wherry.pack"  # tag of a PrimFunc of weights alone, which runs once, at a model's first load
_OPAQUE = 8  # TVM's kOpaque pattern: tagged operations are not fused with others


def tag(func: Any, op: str, spec: Record | Mapping[str, Any]) -> Any:
    """Tag the PrimFunc `func` as the reference of `op` with the static parameters `spec`."""
    text = spec.to_json() if isinstance(spec, Record) else json.dumps(spec, sort_keys=True)
    attrs = {OP: op, SPEC: text, "op_pattern": _OPAQUE}
    return func.with_attrs(attrs)


def tag_of(func: Any) -> tuple[str, str] | None:
    """Return name and spec (JSON) of the operation that `func` computes; None without a tag."""
    attrs = getattr(func, "attrs", None)
    if not attrs or OP not in attrs:
        return None
    return str(attrs[OP]), str(attrs[SPEC])
