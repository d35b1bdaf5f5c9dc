"""Models that the Kotlin library fetches, by Java's HTTP, from a server that misbehaves."""

from __future__ import annotations

import json
import random
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
import tvm_ffi

from wherry.artifact.manifest import MANIFEST

from ..app.model_server import ModelServer, folder_of
from .conftest import run

pytestmark = [pytest.mark.cpu, pytest.mark.mobile]
BIG = "params_shard_0.bin"
FILES = {BIG: random.Random(1).randbytes(300_000), "tokenizer.json": b"{}"}


@pytest.fixture(scope="module")
def servers():
    """One a case of kotlin/DownloadChecks.kt."""
    names = ("future", "flow", "own", "cancelled", "moved", "refused", "damaged", "other")
    with ExitStack() as stack:
        opened = {n: stack.enter_context(ModelServer(folder_of(FILES))) for n in names}
        opened["flow"].cuts[BIG] = [1000, 100_000]
        opened["cancelled"].cuts[BIG] = [100_000]
        opened["cancelled"].hangs = True
        opened["moved"].redirects[BIG] = f"{opened['other'].url}/{BIG}"
        opened["refused"].statuses[BIG] = [403]
        opened["damaged"].files[BIG] = bytes(300_000)
        yield opened


@pytest.fixture(scope="module")
def said(all_classes, bridge, servers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("downloads")
    ffi = Path(tvm_ffi.__file__).parent / "lib" / "libtvm_ffi.so"
    libraries = f"-Dwherry.libraries={ffi}:{bridge}"
    options = ["-Xcheck:jni", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", libraries]
    cases = [f"{name}={server.url}" for name, server in servers.items() if name != "other"]
    cases += ["nobody=http://127.0.0.1:9/made", "odd=file:///etc"]
    text = run(["java", *options, "-cp", all_classes, "DownloadChecksKt", folder, *cases])
    assert "WARNING in native method" not in text, text
    return folder, json.loads(text.splitlines()[-1])


@pytest.mark.nightly
def test_downloads_of_kotlin(said, servers):
    folder, outcomes = said
    assert outcomes.pop("future") is True and outcomes.pop("flow") == "download true"
    assert outcomes.pop("moved") == "nothing"
    for case in ("future", "flow", "moved"):
        contents = {path.name: path.read_bytes() for path in (folder / case).iterdir()}
        assert contents == servers[case].files
    assert (BIG, "bytes=1000-") in servers["flow"].requests
    assert outcomes.pop("cancelled") < 30_000  # a desktop's Java reads until its time is over, 15 s
    expected = {
        "own": "IllegalStateException null: own",
        "refused": f"DownloadException 403: {servers['refused'].url}/{BIG} .*HTTP 403",
        "damaged": f"DamagedFileException null: .*{BIG} is not what {MANIFEST} lists",
        "nobody": "DownloadException null: http://127.0.0.1:9/made/wherry.json cannot be fetched",
        "odd": "DownloadException null: file:///etc/wherry.json .*file is not HTTP",
    }
    assert set(outcomes) == set(expected)
    for name, pattern in expected.items():
        assert re.match(pattern, outcomes[name]), (name, outcomes[name])


@pytest.mark.nightly
def test_headers_are_for_one_server(said, servers):
    for name in ("future", "moved"):
        assert all(h.get("Authorization") == "Bearer key" for h in servers[name].headers)
    assert [h.get("Authorization") for h in servers["other"].headers] == [None]


@pytest.fixture(scope="module")
def work_servers():
    """One a case of kotlin/WorkChecks.kt."""
    with ExitStack() as stack:
        names = ("whole", "again", "gone", "damaged")
        opened = {n: stack.enter_context(ModelServer(folder_of(FILES))) for n in names}
        opened["again"].statuses[MANIFEST] = [503, 429]
        opened["again"].cuts[BIG] = [100_000]
        opened["gone"].statuses[BIG] = [404]
        opened["damaged"].files[BIG] = bytes(300_000)
        yield opened


@pytest.mark.nightly
def test_downloads_in_the_background_of_kotlin(all_classes, bridge, work_servers, tmp_path):
    """WorkManager is a stub, which runs the work once; what waits is asked for again."""
    ffi = Path(tvm_ffi.__file__).parent / "lib" / "libtvm_ffi.so"
    options = ["-Xcheck:jni", "-XX:TieredStopAtLevel=1", f"-Dwherry.libraries={ffi}:{bridge}"]
    cases = [f"{name}={server.url}" for name, server in work_servers.items()]
    said = run(["java", *options, "-cp", all_classes, "WorkChecksKt", tmp_path, *cases])
    assert "WARNING in native method" not in said, said
    events = json.loads(said.splitlines()[-1])
    once, end = ["waiting", "running null"], ["running download true", "complete true"]
    start, refused = ["none", "UNMETERED true false"], [*once, "running check true", "again"]
    assert events["whole"] == [*start, *once, *end, "0 left in wherry/whole"]
    again = [*refused, *refused, *once, *end, "0 left in wherry/again"]
    assert events["again"] == ["none", "CONNECTED true true", *again]
    for name, why in (("gone", "HTTP 404"), ("damaged", f"is not what {MANIFEST} lists")):
        assert events[name][:4] == [*start, *once]
        assert events[name][-2].startswith("failed: ") and why in events[name][-2]
    assert events["odd"] == '"../x" is no name of a folder'
    for name in ("whole", "again"):
        folder = tmp_path / "wherry" / name
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == work_servers[name].files
    assert all(h.get("Authorization") == "Bearer key" for h in work_servers["whole"].headers)
