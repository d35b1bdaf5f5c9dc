"""The families of tool calls, as app/tools has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from wherry.data import read

from .readers import family_of


@dataclass(frozen=True)
class Family:
    """A family and its format: app/tools/format.h says what the lists are."""

    name: str
    channels: bool
    stops: tuple[str, ...]
    begins: tuple[str, ...]
    markers: tuple[str, ...]
    silent: tuple[str, ...]
    bare: bool


def _family(row: dict[str, Any]) -> Family:
    form = json.loads(family_of(row["name"]))
    lists = (tuple(form[key]) for key in ("begins", "markers", "silent"))
    stops = tuple(row.get("stops", ()))
    return Family(row["name"], row.get("channels", False), stops, *lists, form["bare"])


# Some families have two rows, which differ in their signs.
FAMILIES = tuple({row["name"]: _family(row) for row in read("tool_families")}.values())
NAMES = tuple(family.name for family in FAMILIES)


def named(name: str) -> Family:
    """The family of this name."""
    return FAMILIES[NAMES.index(name)]
