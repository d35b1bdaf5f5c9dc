"""Model folders from a server that cuts, damages and lies, by `app/files`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from wherry.artifact.manifest import MANIFEST

from .download import (
    BUSY,
    CANCELLED,
    DAMAGED,
    INCOMPATIBLE,
    INVALID_ARGUMENT,
    NO_SPACE,
    UNREACHABLE,
    download,
    missing,
)
from .model_server import ModelServer, folder_of, manifest_of

pytestmark = pytest.mark.cpu
BIG, SMALL = "params_shard_0.bin", "tokenizer.json"
FILES = {BIG: random.Random(1).randbytes(300_000), SMALL: b'{"a": "\xc3\xa9"}', "empty.txt": b""}
TOTAL = sum(map(len, FILES.values()))
CUT = 100_000


@pytest.fixture
def server():
    with ModelServer(folder_of(FILES)) as started:
        yield started


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "below" / "model"


def contents(folder: Path) -> dict[str, bytes]:
    """All that is in a folder, hidden files too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_complete(server: ModelServer, folder: Path) -> bool:
    return contents(folder) == server.files


def test_a_folder_comes_complete_and_once(server, folder):
    result = download(server.url, folder)
    assert result.status == 0, result.error
    assert is_complete(server, folder)
    done = [done for phase, done, total in result.reports if phase == "download" and total == TOTAL]
    assert done[0] == 0 and done[-1] == TOTAL and done == sorted(done) and len(done) > 4
    assert {name for name, _ in server.received()} == {MANIFEST, BIG, SMALL}
    again = download(server.url + "/", folder)
    assert again.status == 0 and again.reports[-1] == ("download", TOTAL, TOTAL)
    assert server.received() == [(MANIFEST, None)]


def test_files_that_the_system_fetches_are_taken(server, folder):
    """What lies complete in its part is not asked for; a damaged one is fetched again."""
    manifest = server.files[MANIFEST]
    big, small = missing(manifest, folder)
    assert [(f["name"], f["size"]) for f in (big, small)] == [
        (name, len(FILES[name])) for name in (BIG, SMALL)
    ]
    (folder / big["part"]).write_bytes(FILES[BIG])
    assert missing(manifest, folder) == [small]
    (folder / small["part"]).write_bytes(bytes(len(FILES[SMALL])))
    assert missing(manifest, folder) == []
    assert download(server.url, folder).status == 0 and is_complete(server, folder)
    assert [name for name, _ in server.received()] == [MANIFEST, SMALL]
    assert missing(manifest, folder) == []
    with pytest.raises(AssertionError, match=f"{INCOMPATIBLE}.*schema 1"):
        missing(b'{"schema": 1}', folder)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_is_taken_up(server, folder, ranges):
    server.ranges = ranges
    server.cuts[BIG] = [CUT, CUT + 1 if not ranges else CUT, 0]
    assert download(server.url, folder).status == 0
    assert is_complete(server, folder)
    begun = [given for name, given in server.received() if name == BIG]
    second = CUT + 1 if not ranges else 2 * CUT
    assert begun == [None, f"bytes={CUT}-", f"bytes={second}-", f"bytes={second}-"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_ended_early_is_taken_up(server, folder, ranges):
    server.ranges = ranges
    ended = download(server.url, folder, report=lambda phase, done, _: done < CUT)
    assert ended.status == CANCELLED and "cancelled" in ended.error
    (part,) = (path for path in folder.iterdir() if BIG in path.name)
    kept = part.stat().st_size
    assert CUT <= kept < CUT + 70_000 and part.suffix == ".part"
    assert not (folder / MANIFEST).exists()
    server.received()
    result = download(server.url, folder)
    assert result.status == 0 and is_complete(server, folder)
    assert (BIG, f"bytes={kept}-") in server.received()
    assert next(done for phase, done, _ in result.reports if phase == "download") >= kept


def test_five_times_nothing_is_the_end(server, folder):
    server.cuts[BIG] = [CUT, 0, 0, 1, *[0] * 5]
    result = download(server.url, folder)
    assert result.status == UNREACHABLE
    assert result.error == f"{server.url}/{BIG} ended after {CUT + 1} of 300000 bytes"
    assert len([name for name, _ in server.received() if name == BIG]) == 8  # a byte begins anew
    assert download(server.url, folder).status == 0 and is_complete(server, folder)


@pytest.mark.parametrize(("status", "times"), [(404, 1), (403, 1), (503, 5), (429, 5), (500, 5)])
def test_a_server_that_refuses(server, folder, status, times):
    server.statuses[SMALL] = [status] * 5
    result = download(server.url, folder)
    assert result.status == UNREACHABLE
    assert result.error == f"{server.url}/{SMALL} cannot be fetched: HTTP {status}"
    assert [name for name, _ in server.received()].count(SMALL) == times


def test_a_server_that_fails_for_a_while(server, folder):
    server.statuses[BIG] = [503, 429, 500]
    assert download(server.url, folder).status == 0 and is_complete(server, folder)


def test_damage_on_the_way_is_fetched_again(server, folder):
    server.bodies[BIG] = [bytes(len(FILES[BIG]))]
    result = download(server.url, folder)
    assert result.status == 0 and is_complete(server, folder)
    assert [given for name, given in server.received() if name == BIG] == [None, None]
    assert result.reports[-1] == ("download", TOTAL, TOTAL)
    assert all(0 <= done <= total for _, done, total in result.reports)


def test_a_damaged_part_is_fetched_again(server, folder):
    download(server.url, folder, report=lambda phase, done, _: done < CUT)
    (part,) = (path for path in folder.iterdir() if BIG in path.name)
    part.write_bytes(bytes(part.stat().st_size))
    assert download(server.url, folder).status == 0 and is_complete(server, folder)


@pytest.mark.parametrize("change", ["other", "longer", "shorter"])
def test_another_file_than_the_manifest_lists(server, folder, change):
    data = {"other": b"x" * len(FILES[SMALL]), "longer": b"x" + FILES[SMALL], "shorter": b"x"}
    server.files[SMALL] = data[change]
    result = download(server.url, folder)
    if change == "shorter":  # it looks like a connection that breaks, until there is no more
        assert result.status == UNREACHABLE and "HTTP 416" in result.error
    else:
        assert result.status == DAMAGED
        assert f"{SMALL} is not what wherry.json lists ({len(FILES[SMALL])} bytes" in result.error
    assert not (folder / MANIFEST).exists() and not (folder / SMALL).exists()


def test_lengths_that_lie(server, folder):
    server.lengths[BIG] = [len(FILES[BIG]) + 5, CUT]  # never came; came short
    server.cuts[BIG] = [CUT]
    assert download(server.url, folder).status == 0 and is_complete(server, folder)


NAMES = ["../out", "/out", "a/b", "a\\b", "", ".", "..", ".hidden", "wherry.json", "a b", "ü", "-x"]


def test_names_that_lead_out_of_the_folder(server, folder):
    files = dict.fromkeys([*NAMES, "x" * 256], b"out") | {SMALL: FILES[SMALL]}
    server.files = {**files, MANIFEST: manifest_of(files)}
    result = download(server.url, folder)
    assert result.status == INCOMPATIBLE
    assert result.error.count("is no name of a file in its folder") == len(NAMES) + 1
    assert server.received() == [(MANIFEST, None)]
    assert not list(folder.iterdir()) and list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (b"<html>Log in</html>", INCOMPATIBLE, "is no manifest of a model"),
        (b"[]", INCOMPATIBLE, "is no manifest of a model"),
        (manifest_of(FILES).replace(b'"made"', b'"mode"'), DAMAGED, "has changed"),
        (manifest_of(FILES, schema=3), INCOMPATIBLE, "has schema 3, this runtime reads 2"),
        (manifest_of({}, files=[]), INCOMPATIBLE, "lists no files"),
        (manifest_of({}, files={"a": {}}), INCOMPATIBLE, "a has no size\n  - a has no SHA-256"),
        (manifest_of({}, files={"a": {"size": -1, "sha256": "0" * 64}}), INCOMPATIBLE, "no size"),
        (b" " * (17 << 20), DAMAGED, "has more than"),
    ],
)
def test_manifests_that_cannot_be_used(server, folder, text, status, said):
    server.files[MANIFEST] = text
    result = download(server.url, folder)
    assert (result.status, said in result.error) == (status, True), result.error
    assert not list(folder.iterdir())


def test_the_digest_is_pythons(server, folder):
    odd = {"digest": "0" * 64, 'é"\\': [1e-05, 1.0, {"digest": 1}], "a, b: c": '{["', "z": [[], {}]}
    for indent in (None, 2):
        values = json.loads(manifest_of({}, architecture=odd))
        server.files = {MANIFEST: json.dumps(values, indent=indent, sort_keys=True).encode()}
        assert download(server.url, folder).status == 0


def test_a_disk_without_room_is_said_before_the_first_byte(server, folder):
    record = {"size": 1 << 49, "sha256": "0" * 64}
    server.files[MANIFEST] = manifest_of({}, files={BIG: record})
    result = download(server.url, folder)
    assert result.status == NO_SPACE
    assert "needs 562949.97 GB more" in result.error and "GB free" in result.error
    assert server.received() == [(MANIFEST, None)]


def test_without_a_connection_a_complete_folder_will_do(server, folder):
    with ModelServer(folder_of(FILES)) as other:
        url = other.url
        assert download(url, folder).status == 0
    assert download(url, folder).status == 0
    (folder / SMALL).unlink()
    result = download(url, folder)
    assert result.status == UNREACHABLE and f"{url}/{MANIFEST} cannot be fetched: " in result.error
    assert download(server.url, folder).status == 0 and is_complete(server, folder)
    server.statuses[MANIFEST] = [404]  # a server that says no is no lack of a connection
    assert download(server.url, folder).status == UNREACHABLE


def test_a_cancel_is_seen_while_it_waits(server, folder):
    server.statuses[BIG] = [503] * 5

    def report(phase: str, done: int, total: int) -> bool:
        return [name for name, _ in server.requests].count(BIG) < 2

    assert download(server.url, folder, report=report, retry_wait=60).status == CANCELLED


def test_a_model_is_replaced_when_the_new_one_is_complete(server, folder):
    download(server.url, folder)
    before = contents(folder)
    (folder / "notes.txt").write_text("the app's own")
    new = {BIG: FILES[BIG][::-1], "params_shard_1.bin": b"more", "empty.txt": b""}
    server.files = folder_of(new)
    ended = download(
        server.url, folder, report=lambda phase, done, _: phase == "check" or done < CUT
    )
    assert ended.status == CANCELLED
    assert before.items() <= contents(folder).items()
    server.received()
    assert download(server.url, folder).status == 0
    assert contents(folder) == {**server.files, "notes.txt": b"the app's own"}
    assert ("empty.txt", None) not in server.received()


def test_parts_of_another_version_are_not_continued(server, folder):
    download(server.url, folder, report=lambda phase, done, _: done < CUT)
    server.files = folder_of({BIG: FILES[BIG][::-1]})
    server.received()
    assert download(server.url, folder).status == 0 and is_complete(server, folder)
    assert (BIG, None) in server.received()


def test_verify_finds_what_has_changed(server, folder):
    download(server.url, folder)
    (folder / BIG).write_bytes(bytes(len(FILES[BIG])))
    server.received()
    assert download(server.url, folder).status == 0 and not is_complete(server, folder)
    result = download(server.url, folder, verify=True)
    assert result.status == 0 and is_complete(server, folder)
    assert server.received()[-1] == (BIG, None)
    assert ("check", TOTAL, TOTAL) in result.reports


def test_one_download_a_folder(server, folder):
    second = []
    result = download(
        server.url, folder, before=lambda _: second.append(download(server.url, folder))
    )
    assert result.status == 0
    assert second[0].status == BUSY and f"writes to {folder}" in second[0].error


def test_what_is_wrong_with_a_call(server, tmp_path):
    result = download(server.url, tmp_path / "x", verify="yes", retry_wait=-1, other=1)
    assert result.status == INVALID_ARGUMENT
    assert all(name in result.error for name in ("verify: found", "retry_wait: found", "other: f"))
    (tmp_path / "file").write_text("")
    result = download(server.url, tmp_path / "file")
    assert result.status == INVALID_ARGUMENT and "cannot be written" in result.error
    assert server.received() == []
