"""Which code a package has for which devices, and the tables by which an app finds it."""

from __future__ import annotations

import io
import json
import re
import tarfile
from types import SimpleNamespace

import pytest

from wherry.errors import UsageError
from wherry.packager import drivers, linked, package
from wherry.packager.platforms import DEVICES, PLATFORMS, TARGETS, platforms_of
from wherry.targets.hosts import HOSTS
from wherry.targets.target import find


def test_the_cpu_is_always_there():
    assert platforms_of(["android"]) == {"android": ("cpu",)}
    assert platforms_of(["android:cpu"]) == {"android": ("cpu",)}
    assert platforms_of(["android:vulkan"]) == {"android": ("cpu", "vulkan")}
    several = ["android:vulkan", "iphone", "android:opencl", "android:vulkan", "android"]
    assert platforms_of(several) == {"android": ("cpu", "vulkan", "opencl"), "iphone": ("cpu",)}


def test_devices_of_platforms():
    assert {*DEVICES, "metal", "cpu"} == set(linked.PREFERRED) and linked.PREFERRED[-1] == "cpu"
    for name, platform in PLATFORMS.items():
        on_gpus = {t for t in TARGETS if t.startswith(f"{name}:")} - {f"{name}:cpu"}
        assert on_gpus == {f"{name}:{device}" for device in platform.gpus}
        assert set(platform.gpus) == ({"metal"} if platform.system == "apple" else set(DEVICES))
        for target in platform.gpus.values():  # which the platform's host can drive
            assert find(target, platform.host).host["mtriple"] == HOSTS[platform.host].triple
    with pytest.raises(UsageError, match=r"(?s)'iphone:opencl'.*android:vulkan.*--target android"):
        platforms_of(["iphone:opencl"])


def compiled(folder, kind, symbols, *variants, sees=False):
    """A compiled folder as far as a package reads it: an archive with an object per library."""
    folder.mkdir()
    records = [{"name": f"{kind}:base", "features": [], "library": "model.tar", "symbols": symbols}]
    for i, features in enumerate(variants, 1):
        own = {"name": f"{kind}:{i}", "features": list(features), "symbols": f"{symbols}{i}_"}
        records.append({**own, "library": f"model.{i}.tar"})
    towers = [
        {
            "library": record["library"].replace("model", "vision"),
            "symbols": record["symbols"].replace(symbols, f"{symbols}vision_"),
        }
        for record in records
        if sees
    ]
    for record in [*records, *towers]:
        with tarfile.open(folder / record["library"], "w") as archive:
            entry = tarfile.TarInfo("lib0.o")
            entry.size = len(record["symbols"])
            archive.addfile(entry, io.BytesIO(record["symbols"].encode()))
    target = {
        "name": f"{kind}:base+",
        "features": [],
        "variants": records[1:],
        "objects": {"format": "ELF", "symbols": symbols},
    }
    files = dict.fromkeys(record["library"] for record in [*records, *towers])
    manifest = SimpleNamespace(target=target, library="model.tar", files=files)
    return linked.Compiled(folder=folder, manifest=manifest)


@pytest.fixture
def model(tmp_path):
    return {
        "cpu": compiled(tmp_path / "cpu", "cpu", "wherry_a_", ["asimddp"]),
        "vulkan": compiled(tmp_path / "vulkan", "vulkan", "wherry_b_"),
        "opencl": compiled(tmp_path / "opencl", "opencl", "wherry_c_"),
    }


def test_the_best_code_comes_first_and_the_oldest_cpu_last(model):
    codes = linked.codes_of(model)
    assert [(c.device, c.name, c.symbols, c.features) for c in codes] == [
        ("opencl", "opencl:base", "wherry_c_", ()),
        ("vulkan", "vulkan:base", "wherry_b_", ()),
        ("cpu", "cpu:1", "wherry_a_1_", ("asimddp",)),
        ("cpu", "cpu:base", "wherry_a_", ()),
    ]
    assert linked.files_of(model["cpu"].manifest) == {"model.tar", "model.1.tar"}
    assert not linked.sees(model)


def test_towers_are_linked_too(tmp_path):
    model = {"cpu": compiled(tmp_path / "cpu", "cpu", "wherry_a_", ["asimddp"], sees=True)}
    assert linked.sees(model)
    assert [c.tower for c in linked.codes_of(model)] == ["wherry_a_vision_1_", "wherry_a_vision_"]
    names = {f"{stem}{level}.tar" for stem in ("model", "vision") for level in ("", ".1")}
    assert linked.files_of(model["cpu"].manifest) == names
    out = tmp_path / "objects"
    out.mkdir()
    linked.write_models(out, [model], ())
    prefixes = {"wherry_a_", "wherry_a_1_", "wherry_a_vision_", "wherry_a_vision_1_"}
    assert {p.read_text() for p in out.glob("*.o")} == prefixes
    assert '"tower": "wherry_a_vision_1_"' in (out / "models.cc").read_text()


def test_objects_of_all_libraries_and_their_table(model, tmp_path):
    out = tmp_path / "objects"
    out.mkdir()
    linked.write_models(out, [model], ("opencl", "vulkan"))
    prefixes = {"wherry_a_", "wherry_a_1_", "wherry_b_", "wherry_c_"}
    assert {p.read_text() for p in out.glob("*.o")} == prefixes
    source = (out / "models.cc").read_text()
    (table,) = re.findall(r'R"json\((.*)\)json"', source)
    rows = json.loads(table)["wherry_a_"]
    assert [row["symbols"] for row in rows] == [
        "wherry_c_",
        "wherry_b_",
        "wherry_a_1_",
        "wherry_a_",
    ]
    for prefix in prefixes:
        assert f"    {prefix}__tvm_ffi__library_bin,\n" in source
    for kind in ("opencl", "vulkan"):
        assert f'{{"{kind}", wherry_{kind}_open, wherry_{kind}_devices}}' in source


def test_a_plugin_takes_headers_that_an_ndk_has(monkeypatch, tmp_path):
    (tmp_path / "include" / "vulkan").mkdir(parents=True)
    (tmp_path / "include" / "vulkan" / "vulkan_core.h").touch()
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path))
    linux, android = PLATFORMS["linux-aarch64"], PLATFORMS["android"]
    assert drivers.requirements(linux, ["opencl"]) == ()
    (headers,) = drivers.requirements(linux, ["vulkan"])
    assert headers.installed == str(tmp_path / "include")
    assert drivers.requirements(android, ["vulkan"]) == ()
    definitions = dict(drivers.definitions(linux, ["vulkan", "opencl"]))
    assert definitions["WHERRY_DRIVERS"] == "opencl;vulkan"
    assert definitions["WHERRY_VULKAN_HEADERS"] == str(tmp_path / "include")
    definitions = dict(drivers.definitions(android, ["vulkan"]))
    assert definitions == {"WHERRY_DRIVERS": "vulkan", "WHERRY_VULKAN_HEADERS": ""}


def test_an_app_of_apple_s_links_what_the_plugin_calls(tmp_path):
    assert drivers.libraries(["opencl", "vulkan"]) == ()
    package._write_headers(tmp_path / "plain")
    package._write_headers(tmp_path / "metal", drivers.libraries(["metal"]))
    linked_too = {'"objc"', 'framework "Foundation"', 'framework "Metal"'}
    for name, libraries in (("plain", set()), ("metal", linked_too)):
        text = (tmp_path / name / "module.modulemap").read_text()
        assert set(re.findall(r"link (.+)", text)) == {'"c++"', *libraries}
