"""The cache's entries, their removal, and concurrent processes."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

import wherry as wherry_package
from wherry.artifact.manifest import read_manifest
from wherry.base.locks import InUseError, Use, making
from wherry.base.temporary import leftovers
from wherry.cache import pruning
from wherry.cache.entries import Entry, entries
from wherry.cli import listing
from wherry.cli.group import cli
from wherry.compiler import api
from wherry.compiler.api import ensure_artifact

from ..support.command import here, started, wait_for, wherry

DAY = 86400
COMPILE = ("compile", "demo")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A cache of its own, here and in the processes that are started."""
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A cache in which the demo was compiled and run."""
    place = tmp_path_factory.mktemp("used")
    done = wherry("run", "demo", "--max-tokens", "1", "x", WHERRY_CACHE=str(place))
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.cpu
def test_a_model_that_is_installed_again_is_not_compiled_again(tmp_path, monkeypatch):
    """Files of a new installation have new times, and the same content."""
    compiled = ensure_artifact("demo")
    installed = tmp_path / "demo"
    shutil.copytree(Path(wherry_package.__path__[0]) / "demo", installed)
    monkeypatch.setattr(api, "package", lambda *_, **__: pytest.fail("it is compiled"))
    assert ensure_artifact(str(installed)) == compiled
    os.utime(installed / "model.safetensors", ns=(1, 1))
    assert ensure_artifact(str(installed)) == compiled


def test_tables_keep_their_columns(monkeypatch, capsys):
    def entry(name, about, size):
        return Entry(kind="model", name=name, about=about, path=Path(name), bytes=size, last_used=0)

    table_entries = [
        entry("demo", "q4f16_1 cpu", 10**6),
        entry("org/" + "long-" * 12, "q" * 40, 10**11),
    ]
    monkeypatch.setattr(listing, "named", lambda: table_entries)
    cli.main(["list"], standalone_mode=False)
    title, *rows = capsys.readouterr().out.splitlines()
    for column, end in {"what": False, "size": True, "last use": False}.items():
        place = title.index(column) + (len(column) if end else 0)
        assert {row[place - 1] == " " for row in rows} == {not end}, column
        assert {row[place : place + 1] == " " for row in rows} == {end}, column


@pytest.fixture
def filled(used, place):
    """A copy of it, with its hard links."""
    place.mkdir()
    for path in sorted(used.rglob("*")):
        target = place / path.relative_to(used)
        if path.is_dir():
            target.mkdir()
        elif path.parent.parent.name == "models" and (
            weight := next(place.glob(f"weights/*/{path.name}"), None)
        ):
            os.link(weight, target)
        else:
            shutil.copy2(path, target)
    return place


def listed():
    return json.loads(here("list", "--json").stdout)


def age(path: Path, days: float) -> None:
    os.utime(path, times=(time.time() - days * DAY,) * 2)


@pytest.mark.cpu
class TestContents:
    def test_list_has_sizes_and_last_use(self, filled):
        (model,) = filled.glob("models/*")
        (weights,) = filled.glob("weights/*")
        for name in ("params_shard_0.bin", "tokenizer.json"):
            (model / name).unlink()
            os.link(weights / name, model / name)
        age(weights, 3)
        rows = {row["kind"]: row for row in listed()}
        assert sorted(rows) == ["model", "packed", "weights"]
        assert {row["name"] for row in rows.values()} == {"demo"}
        inodes = {p.stat().st_ino: p.stat().st_size for f in (model, weights) for p in f.iterdir()}
        assert rows["model"]["bytes"] + rows["weights"]["bytes"] == sum(inodes.values())
        assert rows["model"]["bytes"] < rows["weights"]["bytes"] / 2  # the links count once
        text = here("list")
        assert "3 days ago" in text.stdout and " in all, in " in text.stderr

    def test_running_is_a_use(self, filled):
        folders = [*filled.glob("models/*"), *filled.glob("weights/*"), *filled.glob("packed/*")]
        assert len(folders) == 3
        for folder in folders:
            age(folder, 90)
        assert wherry("run", "demo", "--max-tokens", "1", "x").returncode == 0
        assert all(time.time() - entry.last_used < DAY for entry in entries())

    def test_rm(self, filled):
        wrong = here("rm", "qemo")
        assert wrong.returncode == 2 and "it has demo" in wrong.stderr
        dry = here("rm", "demo", "--dry-run")
        assert len(dry.stdout.splitlines()) == 3 and "would be freed" in dry.stderr
        assert len(listed()) == 3
        assert here("rm", "demo").returncode == 0
        assert listed() == []
        assert not [p for kind in ("models", "weights", "packed") for p in filled.glob(f"{kind}/*")]

    def test_rm_leaves_what_runs(self, filled):
        chat = started("chat", "demo")
        wait_for(chat, lambda: b"Type a message" in chat.stderr.readline())
        refused = here("rm", "demo")
        assert refused.returncode == 2 and "is in use by another process" in refused.stderr
        assert len(listed()) == 3
        out, _ = chat.communicate(b"What is 2 plus 3?\n")
        assert chat.returncode == 0 and b"5" in out
        assert here("rm", "demo").returncode == 0
        assert listed() == []

    def test_prune(self, filled):
        (weights,) = filled.glob("weights/*")
        age(weights, 40)
        dead = filled / "packed" / "0" / ".packed-0.bin.999999.0.tmp"
        dead.parent.mkdir()
        dead.write_bytes(b"x" * 1000)
        age(dead, 1)
        dry = here("cache", "prune", "--dry-run")
        assert dry.returncode == 0 and "weights" in dry.stdout and str(dead) in dry.stdout
        assert weights.exists() and dead.exists()
        assert here("cache", "prune").returncode == 0
        assert not weights.exists() and not dead.exists()
        assert [row["kind"] for row in listed()] == ["model", "packed", "packed"]
        assert here("cache", "prune", "--older-than", "0s").returncode == 0
        assert listed() == []
        wrong = here("cache", "prune", "--older-than", "month")
        assert wrong.returncode == 2 and "30d" in wrong.stderr

    def test_entries_of_other_compilers_go_when_they_are_old(self, filled):
        (model,) = filled.glob("models/*")
        manifest = read_manifest(model)
        for name, key, days in (
            ("other-old", "0" * 18, 40),
            ("other-new", "0" * 18, 20),
            ("own-old", manifest.key, 40),
        ):
            folder = filled / "models" / name
            shutil.copytree(model, folder)
            (folder / "wherry.json").write_text(dataclasses.replace(manifest, key=key).to_json())
            age(folder, days)
        for pid, kind in ((999_999, "tmp"), (os.getpid(), "tmp"), (999_999, "old")):
            (filled / "models" / f".x.{pid}.{kind}").mkdir()
        pruning.sweep(manifest.key)
        assert {p.name for p in filled.glob("models/*")} == {
            model.name,
            "other-new",
            "own-old",
            f".x.{os.getpid()}.tmp",
        }


def test_the_lock_of_a_folder_says_whether_it_is_left(place):
    dead = place / "models" / ".x.999999.tmp"
    dead.mkdir(parents=True)
    with making(place / "models" / "x", "x"):
        assert pruning.leftovers() == []
    assert pruning.leftovers() == [dead]


def test_a_use_ends_with_its_owner(place):
    folder = place / "models" / "x"
    folder.mkdir(parents=True)
    (entry,) = entries()
    with Use(folder), Use(folder), pytest.raises(InUseError):
        pruning.remove(entry)
    pruning.remove(entry)
    assert list((place / "models").iterdir()) == []


def test_a_file_goes_with_the_last_of_its_links(place):
    for kind in ("weights", "models"):
        (place / kind / "x").mkdir(parents=True)
    (place / "weights" / "x" / "w").write_bytes(b"." * 1000)
    os.link(place / "weights" / "x" / "w", place / "models" / "x" / "w")
    (place / "models" / "x" / "m").write_bytes(b"." * 10)
    weights, model = entries()
    assert (weights.bytes, model.bytes) == (1000, 10)
    assert pruning.freed([weights, model]) == 1010
    assert pruning.remove(weights) == 0
    assert pruning.remove(model) == 1010


def test_a_download_is_named_as_on_the_hub(place):
    home = place / "hub" / "org--name"
    for commit in ("a" * 40, "b" * 40):
        (home / commit).mkdir(parents=True)
        (home / commit / "config.json").write_text("{}")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("a" * 40)
    (place / "weights" / "org-name-q4f16_1-0123").mkdir(parents=True)
    listed = entries()
    assert {entry.name for entry in listed} == {"org/name"}
    assert [entry.about for entry in listed] == ["a" * 8, "b" * 8, "q4f16_1"]
    pruning.remove(listed[0])
    assert (home / "refs").is_dir()
    pruning.remove(listed[1])
    assert not home.exists()


@pytest.mark.cpu
class TestTwoAtOnce:
    def compiling(self, place):
        """A process that is compiling, and one that waits for it; with what that has said."""
        first = started(*COMPILE)
        wait_for(first, lambda: list(place.glob("models/.*.tmp")))
        second = started("run", "demo", "--temperature", "0", "What is 2 plus 3?")
        return first, second, second.stderr.readline()

    @pytest.mark.nightly
    def test_the_second_waits_and_uses_what_the_first_wrote(self, place):
        first, second, said = self.compiling(place)
        assert said.startswith(b"Another process is at work on demo for cpu:")
        assert first.poll() is None and second.poll() is None
        out, err = first.communicate()
        assert first.returncode == 0, err
        folder = Path(out.decode().strip())
        library = (folder / "model.so").stat()
        out, err = second.communicate()
        assert second.returncode == 0 and b"5" in out, err
        (only,) = place.glob("models/*")
        assert only == folder
        now = (folder / "model.so").stat()
        assert (now.st_ino, now.st_mtime_ns) == (library.st_ino, library.st_mtime_ns)

    @pytest.mark.nightly
    def test_a_first_that_is_killed_lets_the_second_go_on(self, place):
        first, second, said = self.compiling(place)
        assert said.startswith(b"Another process")
        os.kill(first.pid, signal.SIGKILL)
        first.communicate()
        out, err = second.communicate()
        assert second.returncode == 0 and b"5" in out, err
        (folder,) = place.glob("models/*")  # nothing of the killed one
        assert leftovers(folder) == []

    @pytest.mark.nightly
    def test_a_killed_compilation_leaves_nothing_after_the_next(self, place):
        killed = started(*COMPILE)
        wait_for(killed, lambda: list(place.glob("models/.*.tmp")))
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        (left,) = place.glob("models/.*")
        ensure_artifact("demo", kv_dtype="float32")  # another one
        assert not left.exists()
