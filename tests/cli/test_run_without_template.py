"""`wherry run` of a model that has no chat template."""

from __future__ import annotations

import contextlib

from click.testing import CliRunner
from tests.runtime.conftest import make_model

from wherry.cli import options
from wherry.cli.run import run_command
from wherry.errors import UsageError
from wherry.runtime import MLCEngine


def test_it_names_the_option(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("{}")
    model = make_model("so", template=None)

    @contextlib.contextmanager
    def opened(name, loading):
        yield MLCEngine.of(model)

    monkeypatch.setattr(options, "opened", opened)
    done = CliRunner().invoke(run_command, ["folder", "the cat"])
    assert isinstance(done.exception, UsageError)
    assert "wherry run folder --completion PROMPT" in str(done.exception)
    done = CliRunner().invoke(run_command, ["folder", "--completion", "the cat"])
    assert (done.exit_code, done.stdout.strip()) == (0, "so")
    model.close()
