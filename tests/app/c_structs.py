"""The structs of the core's C ABI, read from engine/include/wherry.h, and their mirrors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = Path(__file__).parents[2] / "engine" / "include" / "wherry.h"
_STRUCT = re.compile(r"typedef struct \{\n((?:(?!typedef)[^}])*)\} (wherry_\w+);")
_CONSTANT = re.compile(r"#define (WHERRY_\w+) (\d+)\n")
_FUNCTION = re.compile(
    r"^(?P<result>[\w ]+\*?) ?\(\*(?P<name>\w+)\)\((?P<arguments>.*)\)$", re.DOTALL
)
_FIELD = re.compile(r"^(?:const )?(?P<type>\w+) ?(?P<stars>\**) ?(?P<names>.*)$", re.DOTALL)


@dataclass(frozen=True)
class Field:
    """One field of a struct.

    Attributes:
        name: its name.
        type: its C type without stars; for a function that of its result.
        pointer: whether it is a pointer.
        count: number of elements of an array; 1 for a single value.
        arguments: the C types of a function's arguments; None: it is no function.
    """

    name: str
    type: str
    pointer: bool = False
    count: int = 1
    arguments: tuple[str, ...] | None = None


def structs() -> dict[str, list[Field]]:
    """Return the fields of each struct that has a body."""
    text = HEADER.read_text(encoding="utf-8")
    constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    fields_of = {}
    for body, name in _STRUCT.findall(text):
        declarations = (" ".join(one.split()) for one in body.split(";"))
        fields = [field for one in declarations if one for field in _fields(one, constants)]
        fields_of[name] = fields
    return fields_of


def _fields(declaration: str, constants: dict[str, int]) -> list[Field]:
    if match := _FUNCTION.match(declaration):
        arguments = tuple(_type(one) for one in match["arguments"].split(","))
        result = _type(match["result"] + " x")
        return [Field(match["name"], result, arguments=arguments)]
    match = _FIELD.match(declaration)
    assert match, declaration
    parsed = []
    for name in match["names"].split(","):
        bare, _, size = name.strip().partition("[")
        count = _count(size.rstrip("]"), constants) if size else 1
        parsed.append(Field(bare, match["type"], bool(match["stars"]), count))
    return parsed


def _count(size: str, constants: dict[str, int]) -> int:
    return int(size) if size.isdecimal() else constants[size]


def _type(argument: str) -> str:
    """Return the C type of an argument without its name, as "int32_t*"."""
    match = _FIELD.match(argument.strip())
    assert match, argument
    return match["type"] + match["stars"]


_NUMBERS = {
    "int": "c_int",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint8_t": "c_uint8",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "float": "c_float",
    "double": "c_double",
    "size_t": "c_size_t",
}
_CLASSES = {
    "wherry_mask": "Mask",
    "wherry_image": "Image",
    "wherry_params": "Params",
    "wherry_event": "Event",
    "wherry_stats": "Stats",
}
_PAGE_TYPES = {
    "int32_t": "i32",
    "int64_t": "i64",
    "uint64_t": "u64",
    "float": "f32",
    "double": "f64",
    "size_t": "size",
}


def for_python() -> str:
    """The structs for ctypes."""
    lines = [
        '"""The structs of the core\'s C ABI for ctypes.',
        "",
        "Written by `make generated` of engine/include/wherry.h, which documents the fields; not",
        "to be edited.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import ctypes",
        "from ctypes import (",
        *(
            f"    {name},"
            for name in sorted(
                {"CFUNCTYPE", "POINTER", "c_char_p", "c_void_p", *(_NUMBERS.values())},
                key=lambda name: (name.rstrip("0123456789"), len(name), name),
            )
        ),
        ")",
    ]
    for name, cls in _CLASSES.items():
        lines += ["", "", f"class {cls}(ctypes.Structure):"]
        lines += [f'    """The C struct `{name}`."""', "", "    _fields_ = ("]
        lines += [f'        ("{f.name}", {_ctypes(f)}),' for f in structs()[name]]
        lines.append("    )")
    return "\n".join([*lines, ""])


def _ctypes(field: Field) -> str:
    if field.arguments is not None:
        arguments = ", ".join(map(_ctype, field.arguments))
        return f"CFUNCTYPE({_ctype(field.type)}, {arguments})"
    if field.pointer:
        return _ctype(field.type + "*")
    return _ctype(field.type) + (f" * {field.count}" if field.count > 1 else "")


def _ctype(name: str) -> str:
    if name == "void":
        return "None"
    if name in ("void*", "char*"):
        return {"void*": "c_void_p", "char*": "c_char_p"}[name]
    if name.endswith("*"):
        pointed = name[:-1]
        return f"POINTER({_CLASSES.get(pointed) or _NUMBERS[pointed]})"
    return _NUMBERS[name]


def for_pages() -> str:
    """The layouts of the structs for TypeScript."""
    lines = ["// Written by `make generated` of engine/include/wherry.h; not to be edited."]
    lines.append('import type { Field } from "./records.js";')
    for name in ("wherry_params", "wherry_event", "wherry_stats"):
        constant = name.removeprefix("wherry_").upper() + "_FIELDS"
        lines += ["", f"/** Fields of the C struct {name}. */", f"export const {constant} = ["]
        for field in structs()[name]:
            kind = "pointer" if field.pointer else _PAGE_TYPES[field.type]
            count = f", {field.count}" if field.count > 1 else ""
            lines.append(f'  ["{field.name}", "{kind}"{count}],')
        lines.append("] as const satisfies readonly Field[];")
    return "\n".join([*lines, ""])
