"""A full disk or a read-only folder ends in a one-line error, not in a traceback."""

from __future__ import annotations

import errno
import os

import pytest

from wherry.cli import group
from wherry.cli.refused import explained
from wherry.errors import ResourceError, UsageError


@pytest.mark.parametrize(
    ("number", "file", "kind", "words"),
    [
        (errno.ENOSPC, None, ResourceError, "No space left on device. Make room"),
        (errno.EROFS, "/cache/models/x", UsageError, "in the cache, /cache. Choose one"),
        (errno.EACCES, "/srv/site", UsageError, "/srv/site: Permission denied. .*-o DIR"),
    ],
)
def test_what_is_said(monkeypatch, number, file, kind, words):
    monkeypatch.setenv("WHERRY_CACHE", "/cache")
    with pytest.raises(kind, match=words):
        raise explained(OSError(number, os.strerror(number), file))


@pytest.mark.parametrize("kind", [NotADirectoryError, FileExistsError, FileNotFoundError])
def test_a_cache_that_is_no_folder(monkeypatch, tmp_path, kind):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "file"))
    error = kind(errno.ENOTDIR, "Not a directory", str(tmp_path / "file" / "locks"))
    with pytest.raises(UsageError, match="export WHERRY_CACHE=DIR"):
        raise explained(error)
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path))
    assert explained(error) is None


def test_what_may_be_our_own_mistake_is_left():
    assert explained(FileNotFoundError(errno.ENOENT, "No such file", "x")) is None


def test_the_command_ends_with_the_code_of_a_full_disk(monkeypatch, capsys):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(group.cli, "main", full)
    with pytest.raises(SystemExit) as ended:
        group.run()
    said = capsys.readouterr().err
    assert ended.value.code == ResourceError.exit_code
    assert said.startswith("Error: No space left on device.") and said.count("\n") == 1


def test_the_command_ends_with_141_when_its_reader_goes_away(monkeypatch, capsys):
    def gone(*_, **__):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("wherry.cli.listing.named", gone)
    monkeypatch.setattr("sys.argv", ["wherry", "list"])
    with pytest.raises(SystemExit) as ended:
        group.run()
    assert (ended.value.code, capsys.readouterr().err) == (group.BROKEN_PIPE, "")
