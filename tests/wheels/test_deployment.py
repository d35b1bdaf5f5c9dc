"""The workflows, the container file and the examples of deployment name what is there."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
import yaml
from click import Context

from wherry.cli.group import cli

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflow:
    def test_jobs(self, path):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert {"runs-on", "steps"} <= job.keys()
            needed = job.get("needs", [])
            assert set([needed] if isinstance(needed, str) else needed) <= workflow["jobs"].keys()

    def test_steps_take_an_action_or_run_a_command(self, path):
        for step in steps(yaml.safe_load(path.read_text())):
            assert ("uses" in step) != ("run" in step), step
            assert "@" in step.get("uses", "@"), step

    def test_what_they_run_is_there(self, path):
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        text = "\n".join(step.get("run", "") for step in steps(yaml.safe_load(path.read_text())))
        for target in re.findall(r"\bmake (?:--directory \S+ )?([a-z-]+)$", text, re.MULTILINE):
            assert target in targets
        for file in re.findall(r"(?<![\w/])(?:wheels|\.ci)/[\w./]+", text):
            assert (ROOT / file).is_file(), file


def serve_options(line: list[str]) -> None:
    """Parse the options of a `wherry serve` as the command does."""
    above = Context(cli, **cli.context_settings)
    command = cli.get_command(above, "serve")
    assert command is not None
    command.make_context("serve", line, parent=above)


def test_the_container_serves():
    text = (ROOT / "Containerfile").read_text()
    program, verb, *options = re.findall(
        '"([^"]+)"', re.search(r"^ENTRYPOINT (.*)$", text, re.M)[1]
    )
    assert (program, verb) == ("wherry", "serve")
    model = re.findall('"([^"]+)"', re.search(r"^CMD (.*)$", text, re.M)[1])
    serve_options([*options, *model])
    assert re.search(r"^USER (?!0\b|root\b)", text, re.M)
    assert re.search(r"^VOLUME /cache$", text, re.M) and "WHERRY_CACHE=/cache" in text
    assert "/health" in text


def test_compose_takes_the_container_file():
    folder = ROOT / "examples" / "deploy"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    service = compose["services"]["wherry"]
    context = folder / service["build"]["context"]
    assert (context / service["build"]["dockerfile"]).is_file()
    assert {volume.split(":")[0] for volume in service["volumes"]} <= compose["volumes"].keys()
    serve_options(service["command"])


def test_the_unit_serves():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(ROOT / "examples" / "deploy" / "wherry.service")
    program, verb, *options = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, verb) == ("wherry", "serve")
    serve_options(options)
    assert unit["Service"]["Environment"].startswith("WHERRY_CACHE=/var/cache/wherry ")
    assert unit["Service"]["CacheDirectory"] == "wherry"
