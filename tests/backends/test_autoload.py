"""`import tvm` finds the devices of Wherry's plugins if Wherry is installed."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points

import pytest

from wherry.machine.plugins import PLUGINS

from ..support.command import SRC, python
from ..support.gpu import device

GROUP = r'\[project\.entry-points\."tvm\.backends"\].*\n((?:\w+ = ".*"\n)+)'
PLAIN = """
import sys, warnings
warnings.simplefilter("error")
import tvm
print(tvm.device(sys.argv[1], 0).exist, "wherry.runtime" in sys.modules)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that looks as if the package was installed there."""
    (lines,) = re.findall(GROUP, (SRC.parent / "pyproject.toml").read_text())
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "wherry-0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wherry\nVersion: 0.0\n")
    (info / "entry_points.txt").write_text("[tvm.backends]\n" + lines.replace('"', ""))
    return folder


@pytest.mark.gpu
@pytest.mark.parametrize("kind", PLUGINS)
@pytest.mark.by_day("opencl")
def test_plain_tvm_has_the_devices(kind, installed):
    device(kind)
    path = os.pathsep.join([str(SRC), str(installed)])
    assert python(PLAIN, kind, PYTHONPATH=path).split() == ["True", "False"]
    if not entry_points(group="tvm.backends", name=f"wherry_{kind}"):  # else Wherry is installed
        assert python(PLAIN, kind).split() == ["False", "False"]


@pytest.mark.nightly
def test_a_plugin_that_was_not_built_is_no_warning(installed, tmp_path):
    path = os.pathsep.join([str(SRC), str(installed)])
    core = tmp_path / "libwherry.so"
    core.touch()
    elsewhere = PLAIN.replace(
        "import tvm\n", "import wherry.machine.plugins as p\np.places = lambda s: []\nimport tvm\n"
    )
    out = python(elsewhere, "vulkan", PYTHONPATH=path, WHERRY_CORE=str(core))
    assert out.split() == ["False", "False"]
