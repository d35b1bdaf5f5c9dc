"""From a compiled folder to an engine: what is checked, and what is passed to the core."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from wherry import artifact, plugins, settings
from wherry.errors import ArtifactError, ToolchainError, UsageError
from wherry.runtime import jit, loading
from wherry.runtime.loaded_model import LoadedModel

from . import small_tokenizers as small
from .fake_core import FakeCore, saying


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "model"
    made.mkdir()
    small.byte_level().save(str(made / "tokenizer.json"))
    (made / "model.so").write_bytes(b"code")
    manifest = artifact.Manifest(
        schema=artifact.SCHEMA_VERSION,
        key="0" * 24,
        interface=artifact.INTERFACE_HASH,
        wherry="0.1.0",
        tvm="0.27",
        name="small",
        architecture={},
        quantization="q4f16_1",
        target={"name": "cpu", "kind": "llvm"},
        deployment={"context": 512, "max_batch": 8, "prefill_chunk": 256, "page_size": 16}
        | {"activations": "int8"},
        memory={},
        capabilities=(),
        library="model.so",
        files={n: artifact.record(made / n) for n in ("tokenizer.json", "model.so")},
    )
    (made / "wherry.json").write_text(manifest.to_json())
    return made


@pytest.fixture
def load(folder):
    """Loads over a scripted core; gives the model and what the core was given."""
    made = []

    def run(model=folder, **options):
        given = []

        def factory(*arguments):
            given.extend(arguments)
            return FakeCore(saying([], 7), context=512)

        made.append(LoadedModel.load(model, core_factory=factory, **options))
        return made[-1], given

    yield run
    for model in made:
        model.close()


def test_configuration_of_the_core(load, folder, monkeypatch):
    model, (where, manifest, device, options, config) = load()
    assert (where, manifest.name, device, options) == (folder, "small", "cpu", {})
    assert config == {"context": 512, "max_batch": 8, "prefill_chunk": 256}
    assert (model.name, model.context, model.max_batch) == ("small", 512, 8)
    monkeypatch.setenv("WHERRY_THREADS", "3")
    _, (*_, options, config) = load(context=100, kv_tokens=300, max_batch=2)
    assert options == {"threads": 3}
    assert config == {"context": 100, "max_batch": 2, "prefill_chunk": 256, "kv_tokens": 300}
    assert load(threads=2)[1][3] == {"threads": 2}
    assert load(max_batch=5)[1][4]["max_batch"] == 5


def test_wrong_options(load, monkeypatch):
    with pytest.raises(UsageError, match="at most 512"):
        load(context=513)
    with pytest.raises(UsageError, match=r"max_batch is 9.*--max-batch 9.*prefill_chunk is 300"):
        load(max_batch=9, prefill_chunk=300)
    with pytest.raises(UsageError, match="context is 0, max_batch is -1"):
        load(context=0, max_batch=-1)
    with pytest.raises(UsageError, match="q4f16_1"):
        load(quant="q8f32_1")
    with pytest.raises(UsageError, match="kv_dtype='int8' was asked for"):
        load(kv_dtype="int8")
    with pytest.raises(UsageError, match="activations='int8', not 'float'"):
        load(activations="float")
    load(activations="int8")
    with pytest.raises(UsageError, match="compiled for 'cpu'"):
        load(target="cuda:sm_90")
    load(target="cpu:znver4", quant="q4f16_1")
    monkeypatch.setenv("WHERRY_THREADS", "many")
    with pytest.raises(UsageError, match="WHERRY_THREADS"):
        load()


def test_contents_are_hashed_once(load, folder, monkeypatch):
    hashed = []
    real = artifact.sha256_of
    monkeypatch.setattr(artifact, "sha256_of", lambda p: (hashed.append(p.name), real(p))[1])
    load()
    load()
    assert sorted(hashed) == ["model.so", "tokenizer.json"]
    (folder / "model.so").write_bytes(b"edoc")  # the same size
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()
    (folder / "model.so").write_bytes(b"longer")
    with pytest.raises(ArtifactError, match="6 bytes, not 4"):
        load()


def test_a_read_only_cache_is_no_obstacle(load, cache):
    cache.write_text("not a folder")
    load()


def test_what_is_not_compiled_goes_to_the_compiler(load, folder, tmp_path, monkeypatch):
    asked = []

    def compiled(model, **options):
        asked.append((model, options))
        return folder

    monkeypatch.setattr(jit, "compiled", compiled)
    options = {"target": "cpu", "quant": "q4f16_1", "kv_dtype": "int8", "activations": "float"}
    model, _ = load("hf://org/name", **options)
    assert model.name == "small"
    assert asked == [("hf://org/name", options | {"progress": None})]


def test_packed_weights_belong_to_the_content(folder, cache):
    manifest = artifact.read_manifest(folder)
    first = loading.pack_dir(manifest)
    assert first.parent == cache / "packed"
    raw = json.loads((folder / "wherry.json").read_text())
    raw["files"]["model.so"]["sha256"] = "0" * 64
    (folder / "wherry.json").write_text(json.dumps(raw))
    assert loading.pack_dir(artifact.read_manifest(folder)) != first


def test_the_core_opens_the_best_library_of_this_machine(folder, monkeypatch):
    raw = json.loads((folder / "wherry.json").read_text())
    raw["target"]["variants"] = [
        {"name": "cpu:x86-64-v4", "features": ["avx512f"], "library": "model.v4.so"}
    ]
    (folder / "wherry.json").write_text(json.dumps(raw))
    manifest = artifact.read_manifest(folder)
    opened = []
    monkeypatch.setattr(loading, "open_runtime", lambda kind: None)
    monkeypatch.setattr(loading, "open_core", lambda: "core")
    monkeypatch.setattr(loading, "NativeCore", lambda *arguments: opened.append(arguments))
    for features in ({"avx2"}, {"avx2", "avx512f"}):
        monkeypatch.setattr(artifact, "cpu_features", lambda: frozenset(features))  # noqa: B023
        loading.native_core(folder, manifest, "cpu", {}, {})
    assert [library for _, library, *_ in opened] == [folder / "model.so", folder / "model.v4.so"]
    # Their packed weights may differ.
    first, second = (options["pack_dir"] for *_, options, _ in opened)
    assert first != second


@pytest.mark.parametrize(
    ("kind", "device"), [("llvm", "cpu"), ("cuda", "cuda:0"), ("vulkan", "vulkan:0")]
)
def test_device(folder, kind, device):
    raw = json.loads((folder / "wherry.json").read_text())
    raw["target"]["kind"] = kind
    (folder / "wherry.json").write_text(json.dumps(raw))
    assert loading.device_of(artifact.read_manifest(folder)) == device


def test_missing_core_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CORE", str(tmp_path / "libwherry.so"))
    with pytest.raises(ToolchainError, match=str(tmp_path)):
        plugins.find_core()
    (tmp_path / "libwherry.so").touch()
    assert plugins.find_core() == tmp_path / "libwherry.so"


def test_settings(monkeypatch, tmp_path):
    monkeypatch.delenv("WHERRY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert settings.cache_dir() == tmp_path / "wherry"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings.cache_dir() == tmp_path / ".cache" / "wherry"
    monkeypatch.setenv("WHERRY_API_KEY", "")
    assert settings.api_key() is None


def test_importing_the_run_time_loads_neither_tvm_nor_the_compiler():
    script = (
        "import sys, wherry.runtime\n"
        "from wherry.runtime import MLCEngine, AsyncMLCEngine, create_app, serve\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('tvm', 'torch')\n"
        "       or m.startswith('wherry.compiler')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={"PYTHONPATH": "src"}, check=False)  # fmt: skip
    assert done.stdout == "[]\n", done.stderr
