"""What `make` would type: what it installs for which target, and that its folders do not meet."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def would_type(*words: str) -> list[str]:
    """The commands of targets where nothing is installed yet."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "--no-print-directory", "VENV=build/none", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_check_builds_the_core_and_installs_no_cuda():
    lines = would_type("check")
    requirements = {line for line in lines if "tests.requirements" in line}
    assert requirements and all(re.search(r"tests\.requirements test >", r) for r in requirements)
    assert not [line for line in lines if re.search(r"pip install [^#]* \.( |$)", line)]
    assert any(" --build " in line and "--target wherry wherry_host" in line for line in lines)


def test_without_npm_the_rest_is_checked():
    lines = would_type("test", "NPM=")
    assert not [line for line in lines if re.search(r"(^|\s)npm (ci|run)", line)]
    assert any("wherry.tools" in line for line in lines)
    assert any("-m pytest" in line for line in lines)


def test_the_tests_have_what_pypi_has():
    assert any("tests.requirements cuda" in line for line in would_type("test"))
    # What CI's script fetches by itself, nobody else has.
    assert not re.search(r"\bpip\b|npm (install|ci)|curl|wget", (ROOT / ".ci" / "run").read_text())


def test_the_documentation_is_not_where_a_site_is_packaged():
    packaged = set(re.findall(r"wherry package .* -o (\w+) ", (ROOT / "README.md").read_text()))
    built = re.search(r"^site_dir: (.*)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)[1]
    assert packaged and built.startswith("build/")
