"""What an output is held to, in the words of the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["json_schema", "regex", "lark"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar that has not been compiled.

    Attributes:
        kind: what `text` is: a JSON Schema, a regular expression that the whole output matches, or
            a grammar in llguidance's dialect of Lark.
        text: without NUL characters; it can be encoded.
        param: the request's field that it comes from.
    """

    kind: Kind
    text: str
    param: str
