"""What a site has, and how `wherry web` serves it."""

from __future__ import annotations

import gzip
import json

import pytest
from starlette.testclient import TestClient

from wherry.errors import ArtifactError, ToolchainError, UsageError
from wherry.web import server, site

from ..support import artifacts
from . import package

WEBGPU = {"kind": "webgpu", "name": "webgpu"}


@pytest.fixture
def folders(tmp_path):
    """Compiled folders: three variants of one model, and another."""
    targets = {
        "a-wasm": {"kind": "llvm", "name": "wasm"},
        "a-webgpu": WEBGPU,
        "a-webgpu-f16": WEBGPU | {"device_features": ["shader-f16"]},
        "b": WEBGPU,
    }
    for name, target in targets.items():
        (tmp_path / name).mkdir()
        artifacts.write(tmp_path / name, name=name[0], target=target)
    return tmp_path


def client(place):
    return TestClient(server.app_of(place))


def test_the_index_groups_variants_the_most_demanding_first(folders):
    index = site.index_of(site.folders_in(folders))
    assert index["schema"] == 1
    assert [m["name"] for m in index["models"]] == ["a", "b"]
    names = ["a-webgpu-f16", "a-webgpu", "a-wasm"]
    assert index["models"][0]["folders"] == [f"models/{name}/" for name in names]
    assert index["models"][1]["bytes"] == sum(map(len, artifacts.CONTENT.values()))


def test_it_says_which_browsers_run_nothing_and_what_to_add(folders):
    of = site.folders_in(folders)
    assert site.notes_on({"models/a/": folders / "a-wasm", "models/b/": folders / "b"}) == [
        "b: browsers without WebGPU do not run it; for them add --target wasm."
    ]
    f16 = {address: path for address, path in of.items() if path.name == "a-webgpu-f16"}
    (note,) = site.notes_on(f16)
    assert note.startswith("a: browsers without WebGPU")
    assert note.endswith("Nor do GPUs without shader-f16; for them add -q q4f16_1 -q q4f32_1.")
    assert len(site.notes_on(of)) == 1  # of `a` there is a variant for all


def test_a_folder_of_models_is_served_with_the_page(folders, page):
    web = client(folders)
    shown = web.get("/")
    assert shown.status_code == 200 and "<title>Wherry</title>" in shown.text
    assert shown.headers["content-type"].startswith("text/html")
    listed = web.get("/models.json").json()["models"]
    for model in listed:
        for folder in model["folders"]:
            assert web.get(f"/{folder}wherry.json").json()["name"] == model["name"]
    assert web.get("/models/none/wherry.json").status_code == 404
    assert web.get("/models/b/../../secret").status_code == 404


def test_headers_types_and_ranges(folders, page):
    web = client(folders / "b")
    answer = web.get("/models/b/params_shard_0.bin", headers={"Range": "bytes=3-"})
    assert (answer.status_code, answer.content) == (206, b"ghts")
    for path in ("/", "/models.json", "/models/b/wherry.json", "/nothing"):
        headers = web.get(path).headers
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-embedder-policy"] == "require-corp"
        assert headers["cache-control"] == "no-cache"
    assert web.get("/page.js").headers["content-type"].startswith("text/javascript")
    assert web.get("/worker.js").status_code == 200
    (folders / "b" / "model.wasm").write_bytes(b"")
    assert web.get("/models/b/model.wasm").headers["content-type"] == "application/wasm"


def test_what_gets_smaller_is_sent_compressed(folders, page):
    folder = folders / "b"
    text = b'{"words": [' + b"1, " * 3000 + b"1]}"
    (folder / "tokenizer.json").write_bytes(text)
    web, place = client(folder), "/models/b/"

    def get(name, **headers):
        with web.stream("GET", place + name, headers=headers) as answer:
            return answer, b"".join(answer.iter_raw())

    small, raw = get("tokenizer.json", **{"accept-encoding": "br, gzip;q=0.5"})
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == text
    assert int(small.headers["content-length"]) == len(raw) < len(text) / 10
    plain, raw = get("tokenizer.json", **{"accept-encoding": "gzip;q=0, *;q=0"})
    assert "content-encoding" not in plain.headers
    assert raw == text
    tags = {answer.headers["etag"] for answer in (small, plain)}
    assert len(tags) == 2
    for answer in (small, plain):
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-type"] == "application/json"
        accepted = answer.headers.get("content-encoding", "identity")
        again, raw = get(
            "tokenizer.json",
            **{"accept-encoding": accepted, "if-none-match": answer.headers["etag"]},
        )
        assert (again.status_code, raw) == (304, b"")
        assert again.headers["vary"] == "Accept-Encoding"
    # Offsets are those of the file, whatever has been sent before.
    cut = {"accept-encoding": "gzip", "range": "bytes=9000-"}
    part, raw = get("tokenizer.json", **cut)
    assert (part.status_code, raw) == (206, text[9000:])
    assert "content-encoding" not in part.headers
    other, raw = get("tokenizer.json", **cut, **{"if-range": small.headers["etag"]})
    assert (other.status_code, raw) == (200, text)
    weights, _ = get("params_shard_0.bin", **{"accept-encoding": "gzip"})
    assert not {"content-encoding", "vary"} & set(weights.headers)
    (folder / "tokenizer.json").write_bytes(text.replace(b"1", b"2"))
    changed, raw = get("tokenizer.json", **{"accept-encoding": "gzip"})
    assert gzip.decompress(raw) == text.replace(b"1", b"2")
    assert changed.headers["etag"] not in tags


def test_a_site_is_served_as_it_is(folders, tmp_path, page):
    folder = tmp_path / "site"
    folder.mkdir()
    site.copy_page(folder)
    (folder / "models.json").write_text('{"schema": 1, "models": []}')
    assert client(folder).get("/models.json").json()["models"] == []
    assert client(folder).get("/icon.svg").headers["content-type"] == "image/svg+xml"


def test_what_cannot_be_served(folders, tmp_path):
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(
        ArtifactError, match=r"neither a site.*wherry compile MODEL --target webgpu"
    ):
        server.app_of(empty)
    (cuda := tmp_path / "cuda" / "m").mkdir(parents=True)
    artifacts.write(cuda, target={"kind": "cuda", "name": "cuda"})
    with pytest.raises(UsageError, match=r"compiled for cuda, which no browser runs"):
        server.app_of(cuda)


def test_a_site_is_not_mixed_with_other_files(tmp_path):
    site.check_new(tmp_path / "none")
    site.check_new(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        site.check_new(tmp_path)
    (tmp_path / "models.json").write_text(json.dumps({}))
    site.check_new(tmp_path)  # written before: its models are found made


@pytest.mark.parametrize("script", ["bundle_page.js", "bundle_notebook.js"])
def test_what_is_built_again_keeps_its_models(script, tmp_path):
    package.need_packages()
    place, wheel = tmp_path / "made", tmp_path / "a.whl"
    (place / "models" / "demo").mkdir(parents=True)
    kept = [place / "models.json", place / "models" / "demo" / "wherry.json"]
    for path in (*kept, wheel, place / "part-old.js"):
        path.write_text("{}")
    given = [str(wheel)] if script == "bundle_notebook.js" else []
    package.run("node", f"scripts/{script}", *given, str(place))
    assert all(path.is_file() for path in kept)
    assert (place / "index.html").is_file()
    assert not (place / "part-old.js").exists()


def test_without_the_page_it_says_what_to_type(folders, monkeypatch, tmp_path):
    monkeypatch.setenv("WHERRY_WEB_PAGE", str(tmp_path / "none"))
    with pytest.raises(ToolchainError, match=r"none\)\. Type: apt-get install nodejs npm"):
        server.app_of(folders)
    with pytest.raises(ToolchainError, match=r"make browser"):
        site.copy_page(tmp_path)


def test_the_page_asks_nobody_else(page):
    for path in page.iterdir():
        text = path.read_text()
        for wrong in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
            assert wrong not in text, (path, wrong)
    (policy,) = [
        line for line in (page / "index.html").read_text().splitlines() if "default-src" in line
    ]
    assert "default-src 'self'; script-src 'self' 'wasm-unsafe-eval';" in policy
