"""The constraint of a request's output, as C++ describes it (app/host/host_abi.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .constraint import Constraint
from .fields import constraint_of
from .tools.enforce import Enforcement, Thoughts, ToolSpec
from .tools.families import named


def constraint_of_requirements(
    requirements: Mapping[str, Any], special: Callable[[str], int | None]
) -> Constraint:
    """Return the constraint; it audits schemas, which may take long.

    Args:
        requirements: {"fields": those of the request that constrain, "chat": null, or how the
            output begins and which tools it may call}.
        special: returns the id of a special token by name, or None.

    Raises:
        RequestError: a schema or a grammar cannot be enforced.
    """
    base = constraint_of(requirements["fields"], lambda name: special(name) is not None)
    chat = requirements["chat"]
    if chat is None:
        assert base is not None, "a request without chat has a constraint"
        return base
    built = Enforcement(
        named(chat["family"]) if chat["family"] else None,
        Thoughts(*chat["thoughts"]) if chat["thoughts"] else None,
        opened=chat["opened"],
        special=special,
    )
    tools, several = [ToolSpec(**tool) for tool in chat["tools"]], chat["several"]
    if chat["must"]:
        return built.calls(tools, several=several)
    if base is not None:
        return built.held(base, tools, several=several)
    return built.text_or_calls(tools, several=several)
