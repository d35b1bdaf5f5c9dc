"""The YAML file and the folder that list a server's models."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from wherry.errors import ModelError, UsageError
from wherry.runtime.load.options import NAMES
from wherry.runtime.server.catalog import prepared
from wherry.runtime.server.catalog.catalog import opened
from wherry.runtime.server.catalog.listing import read
from wherry.runtime.server.catalog.quantities import bytes_of, seconds_of

from ...support import artifacts
from .. import small_tokenizers as small
from ..fake_core import FakeCore, saying


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "models.yaml"
        path.write_text(text)
        return path

    return write


def compiled(folder: Path, **changes):
    folder.mkdir(parents=True)
    small.byte_level().save(str(folder / "tokenizer.json"))
    artifacts.write(folder, target={"name": "cpu", "kind": "llvm"}, **changes)
    return folder


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("5m", 300), ("1h30m", 5400), ("300ms", 0.3), ("1.5s", 1.5), ("90", 90), (0, 0)],
        *[("0", 0), (2.5, 2.5), ("1d", 86400)],
        *[(-1, math.inf), ("-1", math.inf), ("-5m", math.inf)],
    ],
)
def test_durations(text, seconds):
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5 x", "m", "5m 3", "1h-30m", True, None, math.nan, [], "∞"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="a duration is"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *[("12GB", 12 * 10**9), ("16GiB", 2**34), ("1.5 mb", 1500000), ("512K", 512000), (7, 7)],
        *[("123", 123), ("9B", 9), ("2TiB", 2**41)],
    ],
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0", 0, -1, "GB", "1XB", "1 G B", True, 1.5, None, "-5MB"])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="a size is"):
        bytes_of(text)


def test_a_file(file, tmp_path):
    listing_read = read(
        file(
            """
            memory_limit: 12GB
            keep_alive: 10m
            defaults: {threads: 4, context: 2048}
            models:
              - model: demo
              - model: hf://Qwen/Qwen3-0.6B@main
                name: qwen
                aliases: [gpt-4o-mini, "gpt-4o"]
                keep_alive: -1
                preload: true
                context: 8192
                max_slowdown: 3
                draft: drafts/small
                prefix_cache_dir: ~/prefixes
              - model: sub/mine
                mmproj: eyes.gguf
              - model: hf://Org/Name
                mmproj: none
            """
        ),
        {"threads": 2, "max_batch": 8},
    )
    demo, qwen, mine, hub = listing_read.specs
    assert (listing_read.memory_limit, listing_read.keep_alive) == (12 * 10**9, 600)
    assert (demo.name, demo.model, demo.keep_alive, demo.preload) == ("demo", "demo", 600, False)
    assert demo.options == {"threads": 4, "context": 2048, "max_batch": 8}
    assert (qwen.name, qwen.aliases) == ("qwen", ("gpt-4o-mini", "gpt-4o"))
    assert (qwen.model, qwen.keep_alive) == ("hf://Qwen/Qwen3-0.6B@main", math.inf)
    assert qwen.preload and qwen.options["context"] == 8192
    assert qwen.options["draft"] == str(tmp_path / "drafts/small")
    assert qwen.options["prefix_cache_dir"] == str(Path.home() / "prefixes")
    assert (mine.name, mine.model) == ("mine", str(tmp_path / "sub/mine"))
    assert mine.options["mmproj"] == str(tmp_path / "eyes.gguf")
    assert (hub.name, hub.options["mmproj"]) == ("Org/Name", "none")


def test_all_that_is_wrong_is_listed(file):
    with pytest.raises(UsageError) as e:
        read(
            file(
                """
                memory_limit: much
                keepalive: 5m
                defaults: {thread: 4, progress: no}
                models:
                  - {name: a}
                  - {model: demo, contxt: 1, context: many, aliases: b, keep_alive: soon}
                  - {model: 3, preload: "yes"}
                """
            )
        )
    lines = str(e.value).splitlines()[1:]
    for expected in (
        "memory_limit: a size is a number of bytes, or as 800MB, 12GB, 16GiB; found 'much'",
        "keepalive: there is no such key; accepted are defaults, keep_alive, memory_limit, models",
        "models[0].model: it is missing",
        "models[1].context: Input should be a valid integer; found 'many'",
        "models[1].aliases: Input should be a valid list; found 'b'",
        "models[1].keep_alive: a duration is a number of seconds, or as 30s, 5m, 1h30m",
        "models[2].model: Input should be a valid string; found 3",
        "models[2].preload: Input should be a valid boolean; found 'yes'",
    ):
        assert any(line.startswith(f"  - {expected}") for line in lines), (expected, lines)
    (line,) = [line for line in lines if "models[1].contxt" in line]
    options = sorted(NAMES - {"progress"} | {"aliases", "keep_alive", "model", "name", "preload"})
    assert line.endswith(f"there is no such key; accepted are {', '.join(options)}")
    for name in ("thread", "progress"):
        (line,) = [line for line in lines if f"defaults.{name}:" in line]
        assert line.endswith(f"accepted are {', '.join(sorted(NAMES - {'progress'}))}")
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: []", "at least 1 item"),
        ("", "valid dictionary"),
        ("[demo]", "valid dictionary"),
        ("models: [demo]", r"models\[0\]"),
        ("models: [{model: demo, model: demo}]", "the keys model come twice"),
        ("models: [", "is not YAML"),
        ("models: [{model: !!python/object/apply:os.getcwd []}]", "is not YAML"),
        ("models: [{model: demo}, {model: demo}]", "gives a name twice:\n  - 'demo': demo, demo"),
        ("models: [{model: demo, aliases: [demo]}]", "'demo': demo"),
        ("models: [{model: demo, aliases: ['']}]", r"models\[0\].aliases\[0\]"),
    ],
)
def test_files_that_list_nothing(file, text, said):
    with pytest.raises(UsageError, match=said):
        read(file(text))


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "models.yaml")


def test_a_folder(tmp_path, caplog):
    compiled(tmp_path / "models/b")
    (tmp_path / "models/a").mkdir()
    (tmp_path / "models/a/config.json").write_text("{}")
    for other in (".hidden", "notes"):
        (tmp_path / "models" / other).mkdir()
    listing_read = read(tmp_path / "models", {"context": 100}, 7.0)
    assert [(s.name, s.model, s.keep_alive) for s in listing_read.specs] == [
        ("a", str(tmp_path / "models/a"), 7.0),
        ("b", str(tmp_path / "models/b"), 7.0),
    ]
    assert listing_read.specs[0].options == {"context": 100}
    (record,) = caplog.records
    assert "notes is not a model (it has no wherry.json or config.json)" in record.getMessage()
    with pytest.raises(UsageError, match="one model, not a folder of models"):
        read(tmp_path / "models/b")


def test_opened_from_compiled_folders(tmp_path, monkeypatch):
    """Through the real loader, but for the core."""
    given = []

    def core(folder, manifest, device, options, config, **draft):
        given.append((folder.name, device, options, config))
        return FakeCore(saying([], 7), context=512)

    monkeypatch.setattr(
        "wherry.runtime.load.model.LoadedModel.load.__func__.__kwdefaults__",
        {"core_factory": core},
        raising=False,
    )
    memory = {"weights": 10**6, "workspace": 10**6, "kv_per_token": 1000}
    compiled(tmp_path / "m/one", memory=memory)
    compiled(tmp_path / "m/two", memory=memory)
    with opened(tmp_path / "m", options={"context": 256, "threads": 2}) as models:
        assert [m.context for m in models.listed()] == [256, 256]
        assert models.listed()[0].folder == tmp_path / "m/one" and given == []
        model_files = models._slots()[0].prepared
        loaded = prepared.load(model_files, 1024)
        try:
            assert (loaded.name, loaded.context) == ("small", 256)
            assert (loaded.origin.folder, loaded.origin.manifest) == (
                model_files.folder,
                model_files.manifest,
            )
        finally:
            loaded.close()
    ((name, device, options, config),) = given
    assert (name, device, options) == ("one", "cpu", {"threads": 2})
    assert config | {"kv_tokens": 1024, "context": 256} == config


def test_all_that_cannot_be_served_is_said_before_anybody_asks(tmp_path, file):
    compiled(tmp_path / "good")
    compiled(tmp_path / "broken")
    (tmp_path / "broken/model.so").write_bytes(b"other")
    compiled(tmp_path / "other")
    with pytest.raises(ModelError) as e:
        opened(
            file(
                "models: [{model: good}, {model: broken, name: b}, {model: missing},"
                " {model: other, name: o, quant: q8f32_1}, {model: good, name: g, context: 513}]"
            )
        )
    said = str(e.value)
    assert "\n  - good:" not in said
    assert "\n  - b: " in said and "model.so has 5 bytes" in said
    assert "\n  - missing: There is no folder" in said
    assert "\n  - o: " in said and "quant='q4f16_1', not 'q8f32_1'" in said
    assert "\n  - g: More than the compiled model allows: context is 513" in said
