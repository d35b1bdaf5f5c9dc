"""`wherry serve` with one model or several: what goes together, and what is handed on."""

from __future__ import annotations

import contextlib
import math

import pytest
from click.testing import CliRunner

from wherry.cli.group import cli
from wherry.runtime.server.catalog import catalog

FILE = "models: [{model: demo}]"


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Types a command line in place of loading and serving; gives exit code, output and calls."""
    calls = []

    models = contextlib.nullcontext()

    def opened(place, **options):
        del options["progress"]
        calls.append((str(place), options))
        return models

    def serve(engine, **options):
        calls.append((engine is models, {n: options[n] for n in ("port", "allow_pull")}))

    monkeypatch.setattr(catalog, "opened", opened)
    monkeypatch.setattr("wherry.runtime.server.serving.serve", serve)
    monkeypatch.setattr("wherry.cli.interrupts.raise_instead", lambda: None)
    (tmp_path / "models.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        done = CliRunner().invoke(cli, ["serve", *arguments])
        return done.exit_code, done.output, calls

    return run


def test_several_models(typed):
    line = "--models models.yaml --memory-limit 12GB --keep-alive 1h --threads 2 --port 9"
    code, output, calls = typed(*line.split(), "--allow-pull")
    assert (code, output) == (0, "")
    (place, options), (engine, serving) = calls
    assert place == "models.yaml" and engine
    assert (options["memory_limit"], options["keep_alive"]) == (12 * 10**9, 3600)
    assert options["options"]["threads"] == 2
    assert serving == {"port": 9, "allow_pull": True}


def test_what_is_not_said_is_left_to_the_file(typed):
    _, _, calls = typed("--models", "models.yaml", "--keep-alive", "-1")
    assert calls[0][1]["memory_limit"] is None and calls[0][1]["keep_alive"] == math.inf
    assert "threads" not in calls[0][1]["options"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Type one of: wherry serve MODEL, wherry serve --models FILE|FOLDER"),
        ("demo --models models.yaml", "Type one of"),
        ("demo --memory-limit 1GB", "--memory-limit: for several models"),
        ("demo --keep-alive 5m --allow-pull", "--keep-alive, --allow-pull: for several"),
        ("--models models.yaml --model-name a", "--model-name is for one MODEL"),
        ("--models nowhere.yaml", "does not exist"),
        ("--models models.yaml --memory-limit much", "a size is a number of bytes"),
        ("--models models.yaml --keep-alive soon", "a duration is a number of seconds"),
    ],
)
def test_what_does_not_go_together(typed, line, said):
    code, output, calls = typed(*line.split())
    assert code == 2 and said in " ".join(output.split()) and calls == []
