"""The constraint of a request's output, as C++ describes it (app/host/host_abi.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .calls import constraint_of_chat
from .constraint import Constraint
from .fields import constraint_of


def constraint_of_requirements(
    requirements: Mapping[str, Any], is_special: Callable[[str], bool]
) -> Constraint:
    """Return the constraint; it audits schemas, which may take long.

    Args:
        requirements: {"fields": those of the request that constrain, "chat": null, or how the
            output begins and which tools it may call}.
        is_special: whether a name is a special token.

    Raises:
        RequestError: a schema or a grammar cannot be enforced.
    """
    base = constraint_of(requirements["fields"], is_special)
    if requirements["chat"] is None:
        assert base is not None, "a request without chat has a constraint"
        return base
    return constraint_of_chat(requirements["chat"], base)
