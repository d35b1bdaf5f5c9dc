"""The Swift package, as far as it can be checked without its compiler."""

from __future__ import annotations

import plistlib
import re

import wherry
from wherry.packager import swift_package, xcframework

from .conftest import ROOT

PACKAGE = ROOT / "mobile" / "ios"
SOURCES = sorted((PACKAGE / "Sources").rglob("*.swift"))
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def arguments(text: str, at: int) -> int:
    """How many arguments the list has that begins behind text[at], a "("."""
    depth, commas, empty = 0, 0, True
    for c in text[at:]:
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            break
        commas += c == "," and depth == 1
        empty &= c in "( \n"
    return 0 if empty else commas + 1


def declared() -> dict[str, int]:
    """Functions of wherry_app.h, with how many arguments they take."""
    text = _COMMENT.sub("", (ROOT / "app" / "include" / "wherry_app.h").read_text())
    arities = {}
    for call in re.finditer(r"WHERRY_API[^;(]*?\b(wherry_app_\w+)(\()", text):
        of = text[call.start(2) :].split(")")[0]
        arities[call[1]] = 0 if of == "(void" else arguments(text, call.start(2))
    return arities


def test_swift_calls_what_the_header_has():
    header, used = declared(), set()
    for path in SOURCES:
        text = _STRING.sub('""', _COMMENT.sub("", path.read_text()))
        for call in re.finditer(r"\b(wherry_app_\w+)(\()", text):
            if call[1] in ("wherry_app_progress", "wherry_app_fetcher"):
                continue  # records
            given = arguments(text, call.start(2))
            assert given == header.get(call[1]), f"{path.name}: {call[0]} with {given}"
            used.add(call[1])
    assert {"wherry_app_open", "wherry_app_start", "wherry_app_download"} <= used


def test_swift_names_what_the_header_has():
    headers = "".join(p.read_text() for p in ROOT.glob("*/include/wherry*.h"))
    text = _COMMENT.sub("", headers)
    names = {name for p in SOURCES for name in re.findall(r"\bWHERRY_[A-Z_]+\b", p.read_text())}
    assert len(names) > 5
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()
    every = set(re.findall(r"\b(WHERRY_[A-Z_]+) = -\d+", text)) - {"WHERRY_INTERNAL"}
    assert every <= names  # each status has a type


def test_the_page_s_swift_names_what_is_public():
    """No compiler here has SwiftUI."""
    page = (ROOT / "mobile" / "README.md").read_text()
    code = "".join(re.findall(r"^```swift\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    used = set(re.findall(r"\b(?:MLCEngine|Models|model|chat|completions|download)\.(\w+)", code))
    assert {"load", "chat", "completions", "stream", "download", "run"} <= used
    text = "".join(p.read_text() for p in SOURCES)
    public = set(
        re.findall(r"\bpublic (?:static |final |nonisolated )*(?:func|var|let) (\w+)", text)
    )
    assert used <= public, used - public


def test_the_version_is_python_s():
    engine = (PACKAGE / "Sources" / "Wherry" / "MLCEngine.swift").read_text()
    assert f'wherryVersion = "{wherry.__version__}"' in engine


def test_a_package_has_what_it_names(tmp_path):
    swift_package.write_package(tmp_path)
    manifest = (tmp_path / "Package.swift").read_text()
    assert f'path: "{xcframework.NAME}"' in manifest
    for path in re.findall(r'path: "(\w+)"', manifest):
        assert (tmp_path / path / "module.modulemap").is_file()
    for name in re.findall(r'arget\(\s*name: "(\w+)"', manifest):
        folder = "Tests" if name.endswith("Tests") else "Sources"
        assert name == "CWherry" or list((tmp_path / folder / name).glob("*.swift"))
    with (tmp_path / "Sources" / "Wherry" / "PrivacyInfo.xcprivacy").open("rb") as f:
        assert plistlib.load(f)["NSPrivacyTracking"] is False
