"""Downloads from a stand-in of the hub: what is fetched, resumed, and said when it fails."""

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import huggingface_hub
import pytest

import wherry
from wherry.errors import ModelError, ResourceError, UsageError
from wherry.hub.download import fetch
from wherry.hub.source import resolve

from ..support.waiting import until

_spec = importlib.util.spec_from_file_location(
    "hub_stand_in", Path(__file__).with_name("hub_stand_in.py")
)
stand_in = importlib.util.module_from_spec(_spec)
sys.modules["hub_stand_in"] = stand_in  # dataclasses look their module up
_spec.loader.exec_module(stand_in)

COMMIT = stand_in.COMMIT
REPO = "people/boat-1"
BIG = random.Random(0).randbytes(3_000_000)
NEEDED = {
    "README.md": b"#",  # says the licence
    "config.json": b"{}",
    "generation_config.json": b'{"a": 1}',
    "tokenizer.json": b"{}" * 900,
    "tokenizer_config.json": b"{ }",
    "chat_template.jinja": b"{{ x }}",
    "model.safetensors.index.json": b"{}",
    "model-00001-of-00002.safetensors": BIG,
    "model-00002-of-00002.safetensors": BIG[:100_000],
}
OTHERS = {
    "pytorch_model.bin": b"pickle",
    "consolidated.00.pth": b"pickle",
    "consolidated.safetensors": b"twice",
    "onnx/model.safetensors": b"other",
    "training_args.bin": b"pickle",
}
SHARD = "model-00001-of-00002.safetensors"


def point_at(monkeypatch, url):
    """What HF_ENDPOINT does when huggingface_hub is imported."""
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    large = {n for n in NEEDED if n.endswith(".safetensors")}
    hub = stand_in.Hub(REPO, {**NEEDED, **OTHERS}, large).start()
    point_at(monkeypatch, hub.url)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf-cache"))
    huggingface_hub.close_session()
    yield hub
    huggingface_hub.close_session()
    hub.stop()


def test_a_repository_in_mistrals_own_layout_alone(monkeypatch, tmp_path):
    files = {
        "params.json": b"{}",
        "consolidated.safetensors": b"weights",
        "tokenizer.model.v3": b"pieces",
        "tekken.json": b"{}",
        "README.md": b"readme",
    }
    hub = stand_in.Hub(REPO, {**files, "consolidated.00.pth": b"pickle"}, set()).start()
    point_at(monkeypatch, hub.url)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf-cache"))
    huggingface_hub.close_session()
    try:
        folder = get(tmp_path)
    finally:
        huggingface_hub.close_session()
        hub.stop()
    assert {p.name for p in folder.iterdir()} >= files.keys()
    assert not (folder / "consolidated.00.pth").exists()
    assert resolve(str(folder), cache=tmp_path) == folder


def get(tmp_path, revision=None, **kw):
    return fetch(REPO, revision, cache=tmp_path / "cache", pause=0.0, **kw)


def visible(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def file_requests(hub):
    return [r for r in hub.requests if "/api/" not in r[1]]


def test_only_what_is_needed_is_fetched(hub, tmp_path):
    seen = []
    folder = get(tmp_path, progress=lambda *a: seen.append(a))
    assert folder == tmp_path / "cache" / "people--boat-1" / stand_in.COMMIT
    assert visible(folder) == NEEDED
    total = sum(map(len, NEEDED.values()))
    assert seen[-1] == ("download", total, total)
    assert [s[1] for s in seen] == sorted(s[1] for s in seen)


def test_modules_of_sentence_transformers(hub, tmp_path):
    modules = {
        "modules.json": b"[]",
        "config_sentence_transformers.json": b"{}",
        "1_Pooling/config.json": b'{"a": 1}',
    }
    hub.files |= modules | {"onnx/config.json": b"{}", "1_Pooling/onnx/config.json": b"{}"}
    folder = get(tmp_path)
    assert {n: (folder / n).read_bytes() for n in modules} == modules
    assert sorted(p.name for p in (folder / "1_Pooling").iterdir()) == ["config.json"]
    assert not (folder / "onnx").exists()
    (folder / "1_Pooling" / "config.json").write_bytes(b"{}")
    assert (get(tmp_path) / "1_Pooling" / "config.json").read_bytes() == b'{"a": 1}'


def test_a_complete_download_is_not_repeated(hub, tmp_path):
    folder = get(tmp_path)
    hub.requests.clear()
    assert get(tmp_path) == folder
    assert [r[1] for r in hub.requests] == [f"/api/models/{REPO}/revision/main"]
    hub.requests.clear()
    assert get(tmp_path, stand_in.COMMIT) == folder  # a commit cannot change
    assert hub.requests == []
    (folder / "config.json").unlink()
    assert visible(get(tmp_path)) == NEEDED


def test_a_broken_connection_is_taken_up_again(hub, tmp_path):
    hub.breaks[SHARD] = [1_000_000, 0, 700_000, len(BIG)]
    assert visible(get(tmp_path)) == NEEDED
    ranges = [r[2] for r in file_requests(hub) if r[1] == f"/cdn/{SHARD}"]
    assert ranges == [None, "bytes=1000000-", "bytes=1000000-", "bytes=1700000-"]


def test_a_second_run_goes_on_where_the_first_failed(hub, tmp_path):
    hub.breaks[SHARD], hub.then_fails = [1_234_567, len(BIG)], True
    with pytest.raises(ModelError, match="answered 503"):
        get(tmp_path)
    hub.failing = hub.then_fails = False
    hub.requests.clear()
    assert visible(get(tmp_path)) == NEEDED
    assert ("GET", f"/cdn/{SHARD}", "bytes=1234567-") in hub.requests
    assert not any("config.json" in r[1] for r in hub.requests)  # that one was whole


def test_two_downloads_at_once_do_not_mix(hub, tmp_path, caplog):
    """The second waits, and fetches nothing: both would write to one file, each from its place."""
    second = []

    def begin_another(what, done, total):
        if not second and done > 1_000_000:
            second.append(Thread(target=lambda: second.append(get(tmp_path))))
            second[0].start()
            until(lambda: "waiting for it" in caplog.text)

    folder = get(tmp_path, progress=begin_another)
    second[0].join()
    assert second[1:] == [folder]
    assert visible(folder) == NEEDED
    assert [r[1] for r in hub.requests].count(f"/cdn/{SHARD}") == 1


def test_a_server_without_ranges_starts_the_file_again(hub, tmp_path):
    hub.breaks[SHARD], hub.ranges = [1_000_000, len(BIG)], False
    assert visible(get(tmp_path)) == NEEDED


def test_a_killed_process_is_resumed_and_hf_endpoint_is_read(hub, tmp_path):
    code = (
        "import os, signal, sys, pathlib\n"
        "from wherry.hub.download import fetch\n"
        "def kill(what, done, total):\n"
        "    if done > 1_500_000: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"fetch({REPO!r}, cache=pathlib.Path(sys.argv[1]), progress=kill)"
    )
    env = os.environ | {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    env["PYTHONPATH"] = str(Path(wherry.__path__[0]).parent)
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    killed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    hub.requests.clear()
    assert visible(get(tmp_path)) == NEEDED
    (again,) = [r[2] for r in hub.requests if r[1] == f"/cdn/{SHARD}"]
    assert again is not None and int(again.removeprefix("bytes=").rstrip("-")) > 1_000_000


@pytest.mark.parametrize("name", [SHARD, "tokenizer.json"])
def test_damaged_bytes_are_detected(hub, tmp_path, name, monkeypatch):
    listing = hub.listing()
    monkeypatch.setattr(hub, "listing", lambda: listing)
    good = hub.files[name]
    hub.files[name] = b"x" + good[1:]
    with pytest.raises(ModelError, match="arrived damaged"):
        get(tmp_path)
    hub.files[name] = good
    assert visible(get(tmp_path)) == NEEDED


@pytest.mark.parametrize("sha", ["../../../outside", "0" * 39, COMMIT.upper(), "", 5, None])
def test_a_commit_is_forty_digits(hub, tmp_path, sha):
    """A mirror's commit is the name of the folder: any other text could lead out of the cache."""
    hub.sha = sha
    with pytest.raises(ModelError, match=r"40 hexadecimal digits.*HF_ENDPOINT"):
        get(tmp_path)
    assert file_requests(hub) == [] and list(tmp_path.rglob("*")) == []


def test_a_reference_leads_to_no_other_folder(hub, tmp_path, monkeypatch):
    other = get(tmp_path).rename(tmp_path / "elsewhere")
    point_at(monkeypatch, "http://127.0.0.1:9")
    (tmp_path / "cache/people--boat-1/refs/main").write_text("../../elsewhere")
    for revision in ("main", "../../elsewhere", str(other)):
        with pytest.raises(ModelError, match="cannot be reached"):
            get(tmp_path, revision)


@pytest.mark.parametrize("large", [False, True])
def test_no_more_bytes_are_taken_than_listed(hub, tmp_path, monkeypatch, large):
    listing = hub.listing()
    monkeypatch.setattr(hub, "listing", lambda: listing)
    name = SHARD if large else "tokenizer.json"
    hub.files[name] += bytes(40_000_000)
    biggest = []

    def watch(what, done, total):
        biggest.append(max(p.stat().st_size for p in tmp_path.rglob("*.part")))

    size = len(NEEDED[name])
    with pytest.raises(ModelError, match=f"sends more than the {size} bytes that the hub lists"):
        get(tmp_path, progress=watch)
    assert max(biggest) <= len(BIG) + 1 and not [*tmp_path.rglob(f".{name}.part")]


@pytest.mark.parametrize(
    "name", ["..\\..\\x.safetensors", "C:x.safetensors", "1_a\\..\\x/config.json"]
)
def test_names_of_files_stay_in_the_folder(hub, tmp_path, name):
    hub.files[name] = b"{}"
    folder = get(tmp_path)
    assert visible(folder) == NEEDED and not any("x" in r[1] for r in hub.requests if "\\" in r[1])


@pytest.mark.parametrize(
    "entry", [{"size": -1}, {"size": "9"}, {"lfs": {"sha256": "../x", "size": 1}}, {"blobId": 4}]
)
def test_descriptions_of_another_form(hub, tmp_path, monkeypatch, entry):
    listing = hub.listing()
    next(s for s in listing["siblings"] if s["rfilename"] == "config.json").update(entry)
    monkeypatch.setattr(hub, "listing", lambda: listing)
    with pytest.raises(ModelError, match="HF_ENDPOINT"):
        get(tmp_path)
    assert file_requests(hub) == []


def test_without_a_connection_the_last_download_is_used(hub, tmp_path, monkeypatch):
    with monkeypatch.context() as m:
        point_at(m, "http://127.0.0.1:9")
        with pytest.raises(ModelError, match=r"cannot be reached.*not been downloaded before"):
            get(tmp_path)
    folder = get(tmp_path)
    point_at(monkeypatch, "http://127.0.0.1:9")
    assert get(tmp_path) == folder
    with pytest.raises(ModelError, match="cannot be reached"):
        get(tmp_path, "v1")


@pytest.mark.parametrize("name", [SHARD, "tokenizer.json"])
def test_a_download_that_was_damaged_is_mended(hub, tmp_path, caplog, monkeypatch, name):
    folder = get(tmp_path)
    before = visible(folder)
    with (folder / name).open("r+b") as f:
        f.seek(1000)
        f.write(b"?")
    hub.requests.clear()
    assert get(tmp_path) == folder and visible(folder) == before
    assert {path.split("/")[-1] for _, path, *_ in file_requests(hub)} == {name}
    assert f"{name} has changed" in caplog.text and "fetched again" in caplog.text
    (folder / name).write_bytes(b"")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="not been downloaded before, or not completely"):
        get(tmp_path)


def test_a_damaged_note_costs_no_download(hub, tmp_path):
    folder = get(tmp_path)
    note = folder / ".wherry-download.json"
    contents = note.read_text()
    for text in ("", "[]", contents.replace("sha256", "sha255"), contents.replace("0", "1", 1)):
        note.write_text(text)
        hub.requests.clear()
        get(tmp_path)
        assert not file_requests(hub) and note.read_text() == contents


def test_offline_mode_is_kept(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set"):
        get(tmp_path)
    assert hub.requests == []


def test_what_the_hub_refuses_is_explained(hub, tmp_path):
    with pytest.raises(ModelError, match="has no revision 'v9'"):
        get(tmp_path, "v9")
    hub.gated = True
    with pytest.raises(ModelError, match=rf"Accept its terms at {hub.url}/{REPO}.*hf auth login"):
        get(tmp_path)
    hub.private = True
    with pytest.raises(ModelError, match=r"no model 'people/boat-1', or it is private"):
        get(tmp_path)


def test_a_repository_without_weights_is_refused_before_anything_is_fetched(hub, tmp_path):
    for name in [n for n in hub.files if "safetensors" in n or n == "pytorch_model.bin"]:
        del hub.files[name]
    hub.files["flax_model.msgpack"] = b"other weights"
    with pytest.raises(ModelError, match=r"has no model\.safetensors or .*flax_model\.msgpack"):
        get(tmp_path)
    assert file_requests(hub) == []


def test_a_single_file_is_preferred(hub, tmp_path):
    hub.files["model.safetensors"] = b"all"
    assert not any(n.startswith("model-") for n in visible(get(tmp_path)))


def test_the_cache_of_huggingface_hub_is_used(hub, tmp_path):
    home = tmp_path / "hf-cache" / "models--people--boat-1"
    snapshot = home / "snapshots" / stand_in.COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / SHARD).write_bytes(BIG)
    assert visible(get(tmp_path)) == NEEDED
    assert not any(SHARD in r[1] for r in hub.requests)


def test_disk_is_checked_first(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda p: shutil._ntuple_diskusage(10, 9, 1000))
    with pytest.raises(ResourceError, match=r"needs 0\.02 GB more.*WHERRY_CACHE=DIR"):
        get(tmp_path)
    assert file_requests(hub) == []


def test_a_model_is_named_in_three_ways(hub, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(ModelError, match=r"has no config\.json"):
        resolve(str(folder), cache=tmp_path)
    (folder / "config.json").write_text("{}")
    assert resolve(str(folder), cache=tmp_path) == folder
    resolved = resolve(f"hf://{REPO}@v1", cache=tmp_path / "cache")
    assert resolved == tmp_path / "cache" / "people--boat-1" / stand_in.COMMIT


GGUF = {
    "Boat-Q4_K_M.gguf": b"four",
    "Boat-Q8_0.gguf": b"eight",
    "F16/Boat-F16-00001-of-00002.gguf": b"one",
    "F16/Boat-F16-00002-of-00002.gguf": b"two",
    "mmproj-Boat-F16.gguf": b"eyes",
    "README.md": b"#",
}


@pytest.mark.parametrize(
    ("typed", "files"),
    [
        (":Q4_K_M", ["Boat-Q4_K_M.gguf"]),
        (":q8_0", ["Boat-Q8_0.gguf"]),
        ("/Boat-Q8_0.gguf", ["Boat-Q8_0.gguf"]),
        ("/mmproj-Boat-F16.gguf", ["mmproj-Boat-F16.gguf"]),
        ("@v1:F16", sorted(n for n in GGUF if n.startswith("F16/"))),
        ("/F16/Boat-F16-00002-of-00002.gguf", sorted(n for n in GGUF if n.startswith("F16/"))),
    ],
)
def test_one_file_of_many(hub, tmp_path, typed, files):
    hub.files = dict(GGUF)
    file = resolve(f"hf://{REPO}{typed}", cache=tmp_path / "cache")
    assert file.name == Path(files[0]).name
    folder = file.parents[files[0].count("/")]
    assert {str(p.relative_to(folder)) for p in folder.rglob("*.gguf")} == set(files)
    fetched = len(file_requests(hub))
    assert resolve(f"hf://{REPO}{typed}", cache=tmp_path / "cache") == file
    assert len(file_requests(hub)) == fetched


def test_two_files_of_one_repository_do_not_mix(hub, tmp_path):
    hub.files = dict(GGUF)
    four = resolve(f"hf://{REPO}:Q4_K_M", cache=tmp_path)
    eight = resolve(f"hf://{REPO}:Q8_0", cache=tmp_path)
    assert (four.read_bytes(), eight.read_bytes()) == (b"four", b"eight")
    assert four.parent != eight.parent


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        (":Q5_0", r"no file for 'Q5_0'(.|\n)*hf://people/boat-1/Boat-Q4_K_M\.gguf"),
        ("/Ship.gguf", r"no file for 'Ship\.gguf'"),
        ("", r"Type one of these:(.|\n)*F16/Boat-F16\.gguf"),
    ],
)
def test_a_file_that_is_not_there(hub, tmp_path, typed, why):
    hub.files = dict(GGUF)
    with pytest.raises(ModelError, match=why):
        resolve(f"hf://{REPO}{typed}", cache=tmp_path)


def test_anything_else_is_explained(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_text("")
    for model, message in {
        "hf://boat": "not of the form hf://ORG/NAME",
        str(file): "is a file, and no model",
        "people/boat": "Did you mean hf://people/boat",
        "nothing": "There is no folder 'nothing'",
    }.items():
        with pytest.raises(UsageError, match=message) as caught:
            resolve(model, cache=tmp_path)
        assert "hf://ORG/NAME" in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("HF://people/boat", "hf://people/boat"),
        ("https://huggingface.co/people/boat", "hf://people/boat"),
        ("huggingface.co/people/boat/", "hf://people/boat"),
        ("https://huggingface.co/people/boat/tree/main", "hf://people/boat"),
        ("https://huggingface.co/people/boat/tree/v2", "hf://people/boat@v2"),
        ("hf.co/people/boat:Q4_K_M", "hf://people/boat:Q4_K_M?"),
        ("qwen3:0.6b", "Ollama's library"),
        ("./boat", None),
        ("../people/boat", None),
    ],
)
def test_what_other_programs_call_a_model(tmp_path, typed, meant):
    with pytest.raises(UsageError, match="There is no folder") as caught:
        resolve(typed, cache=tmp_path)
    said = str(caught.value).partition("MODEL is one of")[0]
    assert (meant in said) if meant else ("mean" not in said)


def test_files_of_other_programs(tmp_path):
    (tmp_path / "mmproj-model.gguf").write_bytes(b"GGUF")
    file = tmp_path / "model.GGUF"
    file.write_text("")
    assert resolve(str(file), cache=tmp_path) == file
    with pytest.raises(ModelError, match=r"no config\.json, .*the GGUF file itself: .*model\.GGUF"):
        resolve(str(tmp_path), cache=tmp_path)
    (tmp_path / "mlc-chat-config.json").write_text("{}")
    with pytest.raises(ModelError, match="mlc-llm has quantized"):
        resolve(str(tmp_path), cache=tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_text("")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=f"Type its folder: {tmp_path}\n"):
        resolve(str(weights), cache=tmp_path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"adapter_config.json": '{"base_model_name_or_path": "people/boat"}'},
            r"is an adapter \(PEFT\) of 'people/boat'.*merge_and_unload",
        ),
        (
            {"adapter_config.json": "?", "adapter_model.safetensors": "", "config.json": "{}"},
            "adapter .* of another model",
        ),
        ({"params.json": "{}", "consolidated.00.pth": ""}, r"pickled weights \(consolidated\.00"),
        ({"config.json": "{}", "onnx/model.onnx": ""}, r"in ONNX \(onnx/model\.onnx\)"),
        ({"config.json": "{}", "model.onnx": ""}, r"in ONNX \(model\.onnx\)"),
    ],
)
def test_folders_that_are_no_model(tmp_path, files, said):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=said):
        resolve(str(tmp_path), cache=tmp_path)


def test_a_merged_model_may_have_its_adapter_beside(tmp_path):
    for name in ("config.json", "adapter_config.json", "model.safetensors", "model.onnx"):
        (tmp_path / name).write_text("{}")
    assert resolve(str(tmp_path), cache=tmp_path) == tmp_path


def test_an_importance_matrix(tmp_path):
    (tmp_path / "boat-imatrix.dat").write_text("")
    with pytest.raises(UsageError, match="importance matrix"):
        resolve(str(tmp_path / "boat-imatrix.dat"), cache=tmp_path)
