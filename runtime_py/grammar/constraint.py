"""The constraint of an output before compilation, in the terms of the C++ core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["json_schema", "regex", "lark"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The source text of a grammar, not yet compiled.

    Attributes:
        kind: the kind of `text`: a JSON Schema, a regular expression for the whole output, or a
            grammar in llguidance's dialect of Lark.
        text: valid UTF-8 without NUL characters.
        param: the request's field that has the constraint.
    """

    kind: Kind
    text: str
    param: str
