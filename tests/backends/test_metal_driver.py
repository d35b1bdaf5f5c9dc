"""Macs' GPUs, as a library in the place of Apple's two answers their messages."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.machine import devices, metal_driver
from wherry.machine.devices import Device
from wherry.targets import auto

SOURCE = Path(__file__).with_name("fake_metal.cc")


@pytest.fixture
def mac(tmp_path, monkeypatch, request):
    """A Mac whose GPU is of the family that the test asks for."""
    library = tmp_path / "metal.so"
    command = ["g++", "-shared", "-fPIC", f"-DFAMILY={request.param}", SOURCE, "-o", library]
    subprocess.run(command, check=True)
    opened = ctypes.CDLL(str(library))
    monkeypatch.setattr(metal_driver, "_libraries", lambda: (opened, opened))
    monkeypatch.setattr(devices, "KINDS", ("cuda", "metal"))
    monkeypatch.setattr(auto, "KINDS", ("metal",))


@pytest.mark.parametrize("mac", [1007], indirect=True)
def test_a_gpu_is_listed_and_is_the_best_target(mac):
    expected = Device(
        name="Apple M1",
        kind="metal",
        memory_bytes=12 << 30,
        available_bytes=11 << 30,
        largest_buffer_bytes=9 << 30,
        discrete=False,
        driver="Metal",
        software=False,
        threads_per_block=None,
        code=None,
    )
    assert devices.list_devices("metal") == [expected]
    assert devices.problems("metal") == ""
    assert [candidate.target for candidate in auto.candidates()] == ["metal", "cpu"]


@pytest.mark.parametrize("mac", [1005], indirect=True)
def test_an_older_gpu_is_named(mac):
    """As of virtual machines, which CI services lend."""
    assert devices.list_devices("metal") == []
    assert devices.problems("metal") == "Apple M1: the target metal needs an M1 or later"
    assert [candidate.target for candidate in auto.candidates()] == ["cpu"]


def test_elsewhere_there_is_none():
    if sys.platform != "darwin":
        assert metal_driver.gpus() == [] and "metal" not in devices.KINDS
