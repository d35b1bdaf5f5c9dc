"""What a person types for a CPU, and the preset that it gives."""

from __future__ import annotations

import platform

import pytest

from wherry.errors import UsageError
from wherry.targets import cpu, hosts
from wherry.targets.target import find

FOREIGN = "cortex-a76" if platform.machine() == "x86_64" else "x86-64-v3"


@pytest.fixture(autouse=True)
def fresh():
    cpu.preset.cache_clear()
    yield
    cpu.preset.cache_clear()


def dot(preset):
    return preset.kernels.kernels.isa.dot


def test_a_level_and_all_above():
    lowest = find("cpu:x86-64-v2+")
    levels = (lowest, *lowest.variants)
    assert [p.name for p in levels] == [
        "cpu:x86-64-v2+",
        "cpu:x86-64-v3",
        "cpu:x86-64-v3+avxvnni",
        "cpu:x86-64-v4",
        "cpu:x86-64-v4+avx512vnni",
    ]
    assert [dot(p) for p in levels] == ["ssse3", "avx2", "avxvnni", "avx2", "vnni512"]
    # The order is that of preference: what a level needs, later ones of its kind need too.
    needs = [set(p.features) for p in levels]
    assert needs[0] < needs[1] < needs[3] < needs[4]
    assert needs[2] == needs[1] | {"avx_vnni"} and needs[4] == needs[3] | {"avx512_vnni"}
    assert [p.name for p in find("cpu:x86-64-v3+").variants] == [p.name for p in levels[2:]]
    assert find("cpu:x86-64-v3").variants == ()


def test_levels_of_64_bit_arm():
    lowest = find("cpu:armv8-a+")
    levels = (lowest, *lowest.variants)
    names = ["cpu:armv8-a+", "cpu:armv8-a+dotprod", "cpu:armv8-a+dotprod+i8mm"]
    assert [p.name for p in levels] == names
    assert [dot(p) for p in levels] == ["neon", "dotprod", "i8mm"]
    needs = [set(p.features) for p in levels]
    assert needs[1] == needs[0] | {"asimddp"} and needs[2] == needs[1] | {"i8mm"}
    assert all(find(p.name).device == p.device for p in lowest.variants)
    assert find("cpu:armv8-a").device == lowest.device
    assert {dot(find(f"cpu:{cpu}")) for cpu in ("neoverse-v1", "cortex-x2", "apple-a15")} == {
        "i8mm"
    }


def test_activations():
    level = find("cpu:x86-64-v2+")
    assert level.activations == "int8" and level.with_activations("auto") is level
    exact = level.with_activations("float")
    presets = (exact, *exact.variants)
    assert len(presets) == 5 and {p.activations for p in presets} == {"float"}
    assert all(p.kernels.kernels.isa.float_rows for p in presets)
    assert exact.features == level.features
    assert exact.with_activations("float") is exact
    old = find("cpu:x86-64")  # no dot product
    assert old.activations == "float" and old.with_activations("float") is old
    with pytest.raises(UsageError, match=r"'int8'.*cpu:x86-64 multiplies by float ones"):
        old.with_activations("int8")
    with pytest.raises(
        UsageError, match=r"multiplies by int8 or float or bf16 ones.*--activations auto"
    ):
        level.with_activations("int4")
    with pytest.raises(UsageError, match=r"'int8'.*webgpu"):
        find("webgpu").with_activations("int8")


AMX = {"amx_bf16", "amx_tile"}


def isas(preset):
    return [p.kernels.kernels.isa for p in (preset, *preset.variants)]


def test_bf16_adds_a_level_for_amx():
    levels = find("cpu:x86-64-v3+")
    assert not any(isa.amx for isa in isas(levels))
    chosen = levels.with_activations("bf16")
    assert chosen.activations == "bf16" and chosen.record()["fast_math"]
    *others, last = chosen.variants
    assert tuple(others) == levels.variants and chosen.kernels is levels.kernels
    assert last.name == "cpu:x86-64-v4+avx512vnni+amx-bf16" and last.record()["fast_math"]
    assert set(last.features) == set(others[-1].features) | AMX
    assert [isa.amx for isa in isas(chosen)] == [False] * 4 + [True] and dot(last) == "vnni512"
    # the other activations have no such level
    assert levels.with_activations("float").bf16 is None
    objects = levels.in_format("objects").with_activations("bf16")
    assert {p.library for p in (objects, *objects.variants)} == {"tar"}


def test_bf16_of_a_cpu_with_amx():
    cpu_with = find("cpu:sapphirerapids")
    assert not AMX & set(cpu_with.features) and not isas(cpu_with)[0].amx
    chosen = cpu_with.with_activations("bf16")
    assert [p.name for p in chosen.variants] == ["cpu:sapphirerapids+amx-bf16"]
    assert [isa.amx for isa in isas(chosen)] == [False, True]
    elsewhere = [("cpu:sapphirerapids", "windows-x86_64"), ("cpu:x86-64-v3+", "windows-x86_64")]
    without = [(name, None) for name in ("cpu:znver4", "cpu:cascadelake", "cpu:armv8-a+")]
    for name, host in (*without, *elsewhere):
        with pytest.raises(UsageError, match=r"'bf16'.*int8 or float ones"):
            find(name, host).with_activations("bf16")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is x86's")
@pytest.mark.parametrize("has", [frozenset(), AMX])
def test_bf16_on_this_machine(monkeypatch, has):
    level = find("cpu:x86-64-v4+avx512vnni")
    monkeypatch.setattr(cpu, "cpu_features", lambda: frozenset(level.features) | has)
    cpu.preset.cache_clear()
    preset = find("cpu")
    assert preset.name == level.name and bool(preset.bf16) == bool(has)
    if has:
        assert set(preset.with_activations("bf16").variants[0].features) >= AMX


def test_no_such_level_or_cpu():
    with pytest.raises(UsageError, match=r"no level 'znver4\+'.*x86-64-v3\+"):
        find("cpu:znver4+")
    with pytest.raises(UsageError, match="no CPU called 'pentium-9'"):
        find("cpu:pentium-9")


def test_a_foreign_cpu_is_linked_where_there_is_a_linker(monkeypatch):
    monkeypatch.setattr(hosts.shutil, "which", lambda name: f"/usr/bin/{name}")
    linked = find(f"cpu:{FOREIGN}")
    arch = linked.device["mtriple"].partition("-")[0]
    assert (linked.library, linked.linker) == ("so", f"/usr/bin/{arch}-linux-gnu-g++")
    cpu.preset.cache_clear()
    monkeypatch.setattr(hosts.shutil, "which", lambda name: None)
    assert (find(f"cpu:{FOREIGN}").library, find(f"cpu:{FOREIGN}").linker) == ("tar", None)
    monkeypatch.setattr(hosts, "local_compiler", lambda: "g++")
    assert (find("cpu").library, find("cpu").linker) == ("so", None)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are x86-64's")
@pytest.mark.parametrize("guess", ["rocketlake", "sapphirerapids", "znver4"])
@pytest.mark.parametrize("extra", [set(), {"avx512_fp16", "avx512_bf16", "amx_tile", "amx_int8"}])
def test_a_machine_is_called_by_what_it_has(monkeypatch, guess, extra):
    """Whatever LLVM takes it for: hypervisors mask the model, and some of what it has."""
    levels = {
        p.name: set(p.features) for p in (find("cpu:x86-64-v2+"), *find("cpu:x86-64-v2+").variants)
    }
    monkeypatch.setattr(cpu.codegen, "llvm_get_system_cpu", lambda: guess)
    for name, features in levels.items():
        monkeypatch.setattr(cpu, "cpu_features", lambda f=features: frozenset(f | extra))
        cpu.preset.cache_clear()
        preset = find("cpu", "linux-x86_64")
        assert preset.name == name.removesuffix("+") and set(preset.features) == features
        again = find(preset.name)
        assert (again.device, dot(again)) == (preset.device, dot(preset))


def test_what_a_virtual_machine_hides_is_not_used(monkeypatch):
    full = find("cpu")
    hidden = {"avx512f", "avx2", "asimddp"} & set(full.features)
    if not hidden:
        pytest.skip(f"this CPU has none of the features to hide: {full.features}")
    monkeypatch.setattr(cpu, "cpu_features", lambda: frozenset(full.features) - hidden)
    cpu.preset.cache_clear()
    assert not hidden & set(find("cpu").features)
    assert dot(find("cpu")) != dot(full)
