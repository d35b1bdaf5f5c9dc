"""Writes a wheel's bill of materials, in CycloneDX 1.6, where PEP 770 has it."""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from .sources import Part

NAME = "wherry.cdx.json"


def _component(
    name: str, number: str | None, kind: str, licence: str | None, about: str
) -> Component:
    url = PackageURL(type=kind, name=name, version=number)
    return Component(
        name=name,
        version=number,
        type=ComponentType.LIBRARY,
        bom_ref=str(url),
        purl=url,
        description=about,
        scope=ComponentScope.REQUIRED,
        licenses=[LicenseExpression(licence)] if licence else [],
    )


def _inside(parts: list[Part], browser: Path | None) -> Iterator[Component]:
    """The parts of others that are compiled into files of the wheel."""
    for name in ("apache-tvm", "apache-tvm-ffi"):
        about = "its headers' inline functions, in libwherry*"
        if browser is not None:
            about += "; its runtime, in web/wherry-core.o"
        yield _component(name, version(name), "pypi", "Apache-2.0", about)
    for part in parts:
        yield _component(part.name, part.version, "generic", part.licence, part.about)
    if browser is None:
        return
    said = subprocess.run(["em++", "--version"], check=True, capture_output=True, text=True)
    number = re.search(r"\d+\.\d+\.\d+", said.stdout)
    about = "its C and C++ libraries (musl, libc++), in web/wherry-core.o"
    yield _component("emscripten", number[0] if number else None, "generic", "MIT OR NCSA", about)


def _needed(metadata: str) -> Iterator[Component]:
    """The packages that `pip install` brings, without those of extras."""
    for requirement in Parser().parsestr(metadata).get_all("Requires-Dist") or []:
        if "extra ==" in requirement:
            continue
        match = re.match(r"([\w.-]+) *(.*)", requirement)
        assert match is not None
        exact = re.fullmatch(r"==([\w.]+)", match[2])
        about = f"installed with the wheel: {match[2]}"
        yield _component(match[1], exact[1] if exact else None, "pypi", None, about)


def write_bill(folder: Path, parts: list[Part], browser: Path | None, when: int) -> Path:
    """Write `*.dist-info/sboms/wherry.cdx.json` into an unpacked wheel; return it.

    Args:
        folder: the unpacked wheel.
        parts: what is inside of others besides TVM's headers.
        browser: the build that the core for browsers came from, if it is inside.
        when: seconds since 1970, which the bill says it was made at.
    """
    (info,) = folder.glob("*.dist-info")
    metadata = (info / "METADATA").read_text()
    head = Parser().parsestr(metadata)
    wherry = _component(head["Name"], head["Version"], "pypi", "Apache-2.0", head["Summary"])
    wherry.type = ComponentType.APPLICATION
    inside = list(_inside(parts, browser))
    names = {part.name for part in inside}
    needed = [part for part in _needed(metadata) if part.name not in names]
    bill = Bom(
        components=[*inside, *needed],
        metadata=BomMetaData(
            component=wherry, timestamp=datetime.fromtimestamp(when, timezone.utc)
        ),
        # The same wheel has the same bill.
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"wherry-{head['Version']}-{when}"),
    )
    bill.register_dependency(wherry, [*inside, *needed])
    out = info / "sboms" / NAME
    out.parent.mkdir(exist_ok=True)
    out.write_text(JsonV1Dot6(bill).output_as_string(indent=1) + "\n")
    return out
