"""The directions in which the folders of engine/ and app/ may include each other, and how many
arguments their functions take at most."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What each folder of engine/ includes besides itself: a model knows rows and tokens, the virtual
# machine is one kind of model, and scheduling knows models by their interface alone.
ENGINE: dict[str, set[str]] = {
    "support": set(),
    "system": set(),
    "matcher": {"support"},
    "sampling": {"support"},
    "tensors": {"support", "system"},
    "model": {"sampling", "support"},
    "config": {"model", "support"},
    "weights": {"model", "tensors", "support", "system"},
    "vm": {"config", "model", "sampling", "support", "system", "tensors", "weights"},
    "cache": {"model", "support", "system"},
    "speculation": {"cache", "model", "sampling", "support"},
    "scheduling": {"cache", "config", "model", "sampling", "speculation", "support", "system"},
    "abi": {"config", "matcher", "model", "sampling", "scheduling", "support", "vm"},
    "backends": {"support"},  # plugins, libraries of their own
    "testing": {"cache", "matcher", "model", "sampling", "scheduling", "support", "system"},
    "programs": {"support", "testing"},
}
# What each folder of app/ includes besides itself and the folders of engine/ that are open to it.
APP: dict[str, set[str]] = {
    "data": set(),
    "support": set(),
    "value": set(),
    "image": {"value"},
    "decode": {"image"},
    "text": {"value"},
    "template": {"value"},
    "request": {"data", "value"},
    "grammar": {"request", "support", "text", "value"},
    "tools": {"data", "grammar", "request", "template", "value"},
    "files": {"request", "value"},
    "vectors": {"request", "template", "text", "value"},
    "chat": {"grammar", "image", "request", "template", "text", "tools", "value", "vectors"},
    "load": {"chat", "decode", "grammar", "request", "support", "template", "text", "value"},
    "host": {
        "chat",
        "grammar",
        "image",
        "request",
        "template",
        "text",
        "tools",
        "value",
        "vectors",
    },
    "abi": {"chat", "files", "load", "request", "value"},
    "lite": {"request", "value"},
    "testing": {"decode", "grammar", "image", "text", "tools", "value"},
    "programs": {"chat", "grammar", "request", "template", "text", "tools", "value"},
}
OPEN = {"matcher", "support"}
# A fake model behind the handles of the C ABI; the defaults of wherry_params.
DOORS = {"app/load/app_test.cc": {"engine/abi"}, "app/host/host.cc": {"engine/sampling"}}

ALLOWED = {f"engine/{room}": {f"engine/{to}" for to in rooms} for room, rooms in ENGINE.items()}
ALLOWED |= {
    f"app/{room}": {f"app/{to}" for to in rooms} | {f"engine/{to}" for to in OPEN}
    for room, rooms in APP.items()
}


def room_of(name: str) -> str:
    """The folder of engine/ or app/ that an included name means; "" where it is another's."""
    if (ROOT / "engine" / name).exists() and "/" in name:
        return "engine/" + name.split("/")[0]
    return "/".join(name.split("/")[:2]) if name.startswith("app/") else ""


def sources(folder: str) -> list[Path]:
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".cc", ".h"}]


def test_every_folder_is_in_the_table():
    folders = {
        f"{path.parent.parent.name}/{path.parent.name}"
        for tree in ("engine", "app")
        for path in (ROOT / tree).glob("*/*")
        if path.suffix == ".cc"
    }
    assert folders <= set(ALLOWED)


def test_there_are_no_circles():
    TopologicalSorter(ALLOWED).prepare()


@pytest.mark.parametrize("room", ALLOWED)
def test_directions(room):
    problems = []
    files = sources(room)
    assert files
    for path in files:
        name = str(path.relative_to(ROOT))
        allowed = {"", room, *ALLOWED[room], *DOORS.get(name, set())}
        if path.stem.endswith("_test") or room.endswith("/testing"):
            allowed |= {"engine/testing", room.split("/")[0] + "/testing"}
        included = re.findall(r'^\s*#include "([^"]+)"', path.read_text(), re.MULTILINE)
        problems += [f"{name} includes {to}" for to in included if room_of(to) not in allowed]
    assert not problems, "\n".join(problems)


# TVM gives its shape.
LONG = {("engine/backends/devices.h", "CopyDataFromTo")}
PARAMETER = re.compile(r"\s*(?:const )?[\w:]+[\s&*]+(?:const )?\w+\s*(?:=.*)?", re.DOTALL)


def long_declarations(text: str) -> list[str]:
    """Names of the functions that a C++ text declares with more than 8 parameters."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    while (plain := re.sub(r"<[^<>;{}()]*(?:\([^()]*\))?[^<>;{}()]*>", "", text)) != text:
        text = plain
    lists = re.findall(r"(\w+)\(([^()]*)\)", text)
    return [
        name
        for name, parameters in lists
        if parameters.count(",") >= 8 and all(map(PARAMETER.fullmatch, parameters.split(",")))
    ]


def test_functions_take_at_most_8_arguments():
    nine = ", ".join(f"const std::vector<std::pair<int, float>>& a{i} = 1" for i in range(9))
    assert long_declarations(f"void f({nine});  // long") == ["f"]
    assert not long_declarations(f"call({nine.replace('const', '1 + ')}); g(a, b, c);")
    long = {
        (str(path.relative_to(ROOT)), name)
        for room in ALLOWED
        for path in sources(room)
        for name in long_declarations(path.read_text())
    }
    assert long == LONG
