"""Handles numbers that doubles cannot express, because llguidance compares doubles.

From 2^53 on doubles skip integers: 2^53 + 1 would be valid for 2^53. A bound moves inwards to a
number that a double expresses in its shortest digits; a constant is refused.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_EXACT = 2**53  # every integer up to this one is exactly a double
_LARGEST = 2**63 - 1  # the largest integer of llguidance; as a bound of integers it is exact
_WIDEST = 10**18 - 1  # bound of numbers without one, whose digits might never end
# The smallest divisor that llguidance takes, by which decimals behind the point are bounded, and
# the decimals of bounds between which it has multiples.
_FINEST, _DECIMALS = 1e-10, 9
_DIGITS = 15  # number of digits up to which a decimal survives the conversion to a double
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def inexact(constant: Any) -> int | float | None:
    """Return a number in a constant that llguidance would confuse with another one; or None."""
    if isinstance(constant, (list, dict)):
        inner = constant.values() if isinstance(constant, dict) else constant
        return next((number for v in inner if (number := inexact(v)) is not None), None)
    if not _is_number(constant) or abs(constant) <= _EXACT:
        return None
    as_double = min(int(float(constant)), _LARGEST)
    exact = isinstance(constant, int) and as_double == constant and constant > -_LARGEST - 1
    return None if exact else constant


def tighten(schema: dict[str, Any]) -> str | None:
    """Move a schema's large bounds inwards; return the keyword of a bound that cannot move."""
    types = schema.get("type")
    named = types if isinstance(types, list) else [types]
    integer = "integer" in named and "number" not in named
    for name, exclusive, sign in (
        ("maximum", "exclusiveMaximum", 1),
        ("minimum", "exclusiveMinimum", -1),
    ):
        beyond = _large(schema.get(exclusive))
        # draft 4 writes `exclusiveMinimum` as a boolean next to `minimum`
        if schema.get(exclusive) is True:
            beyond = _large(schema.get(name))
        bounds = [] if beyond is None else [beyond * sign - 1]
        if (bound := _large(schema.get(name))) is not None:
            bounds.append(bound * sign)
        if not bounds:
            continue
        inside = _inside(min(bounds), integer and sign > 0)
        if inside is None:
            return name if bound is not None else exclusive
        if beyond is not None:
            del schema[exclusive]
        if bound is not None or not _is_number(schema.get(name)):
            schema[name] = inside * sign
        else:
            schema[name] = min(inside, schema[name] * sign) * sign
    return None


def bound(schema: dict[str, Any], *, decimals: bool) -> None:
    """Bound the digits of integers, and of numbers that a schema limits.

    A number without limits may have an exponent, and llguidance does not write one with limits:
    6.6e-34 would end as 6.6. So its digits stay unbounded, as those of a multiple do, whose
    automaton would have states for each digit and remainder.

    Args:
        schema: the schema, which is rewritten in place.
        decimals: whether to bound decimals, by a divisor. llguidance overflows when it combines a
            fine divisor with another one, so no schema of the document may have one.
    """
    types = schema.get("type")
    named = types if isinstance(types, list) else [types]
    limits = {name: schema[name] for name in _BOUNDS if _is_number(schema.get(name))}
    fractions = "number" in named
    if {"const", "enum", "multipleOf"} & schema.keys():
        return
    if not (limits if fractions else "integer" in named):
        return
    if not limits.keys() & {"maximum", "exclusiveMaximum"}:
        schema["maximum"] = _beyond(max(limits.values(), default=0))
    if not limits.keys() & {"minimum", "exclusiveMinimum"}:
        schema["minimum"] = -_beyond(-min(limits.values(), default=0))
    if decimals and fractions and all(map(_is_coarse, limits.values())):
        schema["multipleOf"] = _FINEST


def _beyond(bound: float) -> int:
    """Return an upper bound for numbers above another one."""
    return _WIDEST if bound < _WIDEST // 10 else _LARGEST


def _is_coarse(bound: float) -> bool:
    exponent = Decimal(str(bound)).normalize().as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_DECIMALS


def _inside(bound: int, integer: bool) -> int | None:
    """Return an exactly expressible number near a bound, on the inner side.

    None if there is none.
    """
    if abs(bound) <= _EXACT:
        return bound
    if integer and bound >= _LARGEST:
        return _LARGEST
    bound = min(bound, _LARGEST)
    step = int(10 ** max(len(str(abs(bound))) - _DIGITS, 0))
    multiple = bound // step * step
    while int(float(multiple)) > bound:
        multiple -= step
    return multiple if multiple > -_LARGEST else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _large(value: Any) -> int | None:
    """Return a number from 2^53 on as an integer; None for other values."""
    return int(value) if _is_number(value) and abs(value) >= _EXACT else None
