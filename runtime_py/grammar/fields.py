"""Turns request fields into a constraint: the fields of OpenAI, vLLM and llama.cpp."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from wherry.errors import message_of

from ..errors import RequestError
from .audit import MAX_TEXT, SchemaProblems, prepared
from .constraint import Constraint
from .layout import ONE_LINE, Layout, of_pattern
from .patterns import literal
from .repair import endless_rule
from .structural_tag import structural_tag

# Maximum number of characters; longer texts are refused unread, because compile time grows faster
# than the length.
MAX_GRAMMAR = 64 * 2**10
# maximum number of characters; the converter's time is quadratic in the rules, 0.3 s at this length
MAX_GBNF = 16 * 2**10
MAX_REGEX = 8 * 2**10
MAX_CHOICES = 64 * 2**10  # maximum number of characters in all choices together
MAX_DEPTH = 100  # maximum depth of nested groups: the grammar's parser is recursive
# Matches the brackets in GBNF and Lark that open no group: in strings, expressions, comments.
_NO_GROUPS = (
    re.compile(r'"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|#[^\n]*'),
    re.compile(r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/|(?:#|//)[^\n]*'),
)

FIELDS = (
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
    "json_schema",
)
# layout options that vLLM's `structured_outputs` may contain
_OPTIONS = ("whitespace_pattern", "disable_any_whitespace")
# options without effect: Wherry has no fallback that could be disabled
_NO_EFFECT = ("disable_fallback",)


def constraint_of(
    fields: Mapping[str, Any], is_special: Callable[[str], bool] = lambda name: False
) -> Constraint | None:
    """Return the constraint that a request's fields ask for, or None.

    Args:
        fields: the request's fields of `FIELDS`.
        is_special: whether a name is a special token: structural tags may begin with one.

    Raises:
        RequestError: there are different constraints, a field has the wrong shape, or a schema
            cannot be enforced.
    """
    given = given_fields(fields)
    if len(given) < 2:
        return _one(given[0], fields[given[0]], is_special) if given else None
    # some clients send one constraint in the fields of several servers
    try:
        constraints = [_one(name, fields[name], is_special) for name in given]
    except RequestError:
        constraints = []
    if len({(constraint.kind, constraint.text) for constraint in constraints}) != 1:
        names = ", ".join(given)
        raise RequestError(
            f"An output takes one constraint; {names} are several",
            param=names,
            code="invalid_grammar",
        )
    return constraints[0]


def given_fields(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that constrain the output."""
    return [n for n in FIELDS if fields.get(n) is not None and fields[n] != {"type": "text"}]


def _one(name: str, value: Any, is_special: Callable[[str], bool]) -> Constraint:
    if name == "response_format":
        return _response_format(value, is_special)
    if name == "structured_outputs":
        return _structured_outputs(value, is_special)
    kind = {"json_schema": "json"}.get(name, name.removeprefix("guided_"))
    return _MAKERS[kind](value, name)


def _response_format(value: Any, is_special: Callable[[str], bool]) -> Constraint:
    param = "response_format"
    if not isinstance(value, Mapping):
        raise _shape(param, value, 'an object: {"type": "json_object"}')
    kind = value.get("type")
    if kind == "json_object":  # some clients send a schema with the type json_object
        return _json(value.get("schema", {"type": "object"}), f"{param}.schema")
    if kind == "json_schema":
        inner = value.get("json_schema")
        if not isinstance(inner, Mapping) or "schema" not in inner:
            raise _shape(f"{param}.json_schema", inner, 'an object with a "schema"')
        return _json(inner["schema"], f"{param}.json_schema.schema")
    if kind == "structural_tag":
        return _tag(value, param, is_special)
    if kind in ("regex", "grammar"):
        key = "pattern" if kind == "regex" and "pattern" in value else kind
        return _MAKERS[kind](value.get(key), f"{param}.{key}")
    raise _shape(
        f"{param}.type",
        kind,
        "'text', 'json_object', 'json_schema', 'structural_tag', 'regex' or 'grammar'",
    )


def _structured_outputs(value: Any, is_special: Callable[[str], bool]) -> Constraint:
    param = "structured_outputs"
    if not isinstance(value, Mapping):
        raise _shape(param, value, 'an object: {"json": {...}}')
    kinds = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
    unknown = [k for k in value if k not in (*kinds, *_OPTIONS, *_NO_EFFECT)]
    given = [k for k in kinds if value.get(k) is not None and value[k] is not False]
    if unknown or len(given) != 1:
        raise _shape(param, sorted(value), f"exactly one of {', '.join(kinds)}")
    kind = given[0]
    where = f"{param}.{kind}"
    if kind == "structural_tag":
        return _tag(_loaded(value[kind], where), where, is_special)
    if kind in ("json", "json_object"):
        schema = value[kind] if kind == "json" else {"type": "object"}
        return _json(schema, where, _layout(value, param))
    return _MAKERS[kind](value[kind], where)


def _layout(options: Mapping[str, Any], param: str) -> Layout | None:
    """Return the white space that options ask for; None: as models write it."""
    pattern = options.get("whitespace_pattern")
    if options.get("disable_any_whitespace") or pattern is None:
        return None if options.get("disable_any_whitespace") is False else ONE_LINE
    return of_pattern(_text(pattern, f"{param}.whitespace_pattern", MAX_REGEX))


def _json(value: Any, param: str, layout: Layout | None = ONE_LINE) -> Constraint:
    schema = _loaded(value, param)
    try:
        text = prepared(schema, layout)
    except SchemaProblems as e:
        raise RequestError(message_of(e.lines), param=param, code=e.code) from e
    return Constraint("json_schema", text, param)


def _regex(value: Any, param: str) -> Constraint:
    pattern = _text(value, param, MAX_REGEX)
    # The expression always matches the whole output, so the anchors are redundant.
    pattern = re.sub(r"^\^", "", pattern)
    if re.search(r"(?<!\\)(?:\\\\)*\$$", pattern):
        pattern = pattern[:-1]
    return Constraint("regex", pattern, param)


def _choice(value: Any, param: str) -> Constraint:
    if not isinstance(value, list) or not value or not all(isinstance(c, str) for c in value):
        raise _shape(param, value, "a list of at least one text")
    _text("".join(value), param, MAX_CHOICES)
    return Constraint("regex", "|".join(literal(c) for c in dict.fromkeys(value)), param)


def _grammar(value: Any, param: str) -> Constraint:
    text = _text(value, param, MAX_GRAMMAR)
    gbnf = "::=" in text
    if gbnf:
        _text(text, param, MAX_GBNF)
    depth = _depth(_NO_GROUPS[0 if gbnf else 1].sub("", text))
    if depth > MAX_DEPTH:
        raise _invalid(f"{param} has brackets {depth} deep; accepted are {MAX_DEPTH}", param)
    if rule := endless_rule(text):
        raise _invalid(
            f"The grammar has no end: each text of its rule {rule} needs the rule again", param
        )
    from llguidance.gbnf_to_lark import any_to_lark

    try:
        lark = any_to_lark(text)
    except Exception as e:  # the converter raises classes that derive directly from Exception
        raise _invalid(f"The grammar cannot be read: {e}", param) from e
    return Constraint("lark", lark, param)


def lark_of_input(syntax: str, definition: str, param: str) -> str:
    """Return the Lark grammar of a custom tool's input.

    Args:
        syntax: "lark" or "regex".
        definition: the grammar or the expression.
        param: the field that has it.

    Raises:
        RequestError: the definition is too long or too deep.
    """
    if syntax == "regex":
        return f"start: /{slashed(_regex(definition, param).text)}/"
    return _grammar(definition, param).text


def slashed(pattern: str) -> str:
    """Return a regular expression in the form that it has between slashes in Lark."""
    return re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", pattern).replace("\n", "\\n")


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}" and depth:
            depth -= 1
    return deepest


def _tag(value: Any, param: str, is_special: Callable[[str], bool]) -> Constraint:
    try:
        text = structural_tag(value, is_special)
    except SchemaProblems as e:
        raise RequestError(message_of(e.lines), param=param, code=e.code) from e
    except ValueError as e:
        raise RequestError(f"{param}: {e}", param=param) from e
    return Constraint("lark", _text(text, param, MAX_TEXT), param)


_MAKERS: dict[str, Callable[[Any, str], Constraint]] = {
    "json": _json,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
}


def _loaded(value: Any, param: str) -> Any:
    """Return a JSON value, parsed if the client sent it as a text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(_text(value, param, MAX_TEXT))
    except (ValueError, RecursionError) as e:
        raise _invalid(f"{param} is not JSON: {e}", param) from e


def _text(value: Any, param: str, most: int) -> str:
    if not isinstance(value, str):
        raise _shape(param, value, "a text")
    if len(value) > most:
        raise _invalid(f"{param} has {len(value)} characters; accepted are {most}", param)
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise _invalid(f"{param} holds U+0000 or half a surrogate pair", param)
    return value


def _invalid(message: str, param: str) -> RequestError:
    return RequestError(message, param=param, code="invalid_grammar")


def _shape(param: str, value: Any, accepted: str) -> RequestError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:80] + "..."
    return RequestError(f"{param} is {shown}; it takes {accepted}", param=param)
