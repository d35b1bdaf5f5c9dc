"""From a compiled folder to an engine: what is checked, and what is passed to the core."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from wherry.artifact import integrity, variants
from wherry.artifact import manifest as artifact
from wherry.base import settings
from wherry.base.temporary import write_atomically
from wherry.errors import ArtifactError, ToolchainError, UsageError
from wherry.machine import plugins
from wherry.runtime import AsyncMLCEngine, MLCEngine
from wherry.runtime.load import jit, loading, memory
from wherry.runtime.load.model import LoadedModel

from ..support import artifacts
from . import small_tokenizers as small
from .fake_core import FakeCore, saying


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    small.byte_level().save(str(model / "tokenizer.json"))
    artifacts.write(model, target={"name": "cpu", "kind": "llvm"})
    return model


@pytest.fixture
def load(folder):
    """Loads over a scripted core; gives the model and what the core was given."""
    models = []

    def run(model=folder, **options):
        given = []

        def factory(*arguments):
            given.extend(arguments)
            return FakeCore(saying([], 7), context=512)

        models.append(LoadedModel.load(model, core_factory=factory, **options))
        return models[-1], given

    yield run
    for model in models:
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


def test_the_compiler_gets_the_sizes_of_the_engine(load, folder, monkeypatch):
    given_options = {}

    def compiled(model, **options):
        given_options.update(options)
        return folder

    monkeypatch.setattr("wherry.runtime.load.jit.compiled", compiled)
    load("a-model", max_batch=5, prefill_chunk=64, context=100)
    assert given_options == {"thorough": False, "max_batch": 5, "prefill_chunk": 64}


def test_wrong_options(load, monkeypatch):
    with pytest.raises(UsageError, match="at most 512"):
        load(context=513)
    with pytest.raises(UsageError, match=r"max_batch is 9.*--max-batch 9.*prefill_chunk is 300"):
        load(max_batch=9, prefill_chunk=300)
    with pytest.raises(UsageError, match="context is 0, max_batch is -1"):
        load(context=0, max_batch=-1)
    with pytest.raises(UsageError, match="q4f16_1"):
        load(quant="q8f32_1")
    with pytest.raises(UsageError, match="kv_dtype='int8' was requested"):
        load(kv_dtype="int8")
    with pytest.raises(UsageError, match="activations='int8', not 'float'"):
        load(activations="float")
    load(activations="int8")
    with pytest.raises(UsageError, match="compiled for 'cpu'"):
        load(target="cuda:sm_90")
    load(target="cpu:znver4", quant="q4f16_1")
    with pytest.raises(UsageError, match="threads is 0"):
        load(threads=0)
    for open_ in (MLCEngine, AsyncMLCEngine, LoadedModel.load):
        known = "adapt_messages, context, cuda_graphs, device, draft, draft_head, kv_dtype"
        with pytest.raises(TypeError, match=rf"unknown options 'color'; .* {known}"):
            open_("model", color=1)
    monkeypatch.setenv("WHERRY_THREADS", "many")
    with pytest.raises(UsageError, match="WHERRY_THREADS"):
        load()


def test_contents_are_hashed_once(load, folder, monkeypatch):
    hashed = []
    real = artifact.sha256_of
    monkeypatch.setattr(artifact, "sha256_of", lambda p: (hashed.append(p.name), real(p))[1])
    load()
    load()
    assert sorted(hashed) == sorted([*artifacts.CONTENT, "tokenizer.json"])
    (folder / "model.so").write_bytes(b"LIBRARY")  # the same size
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()
    (folder / "model.so").write_bytes(b"longer than it was")
    with pytest.raises(ArtifactError, match="18 bytes, not 7"):
        load()


def test_a_change_that_keeps_size_and_time_is_seen(load, folder):
    load()
    path = folder / "model.so"
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(b"LIBRARY")
    os.utime(path, ns=times)
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()


def test_after_a_restart_all_is_hashed_but_packed_weights(load, folder, monkeypatch):
    load()
    hashed = []
    real = artifact.sha256_of
    monkeypatch.setattr(artifact, "sha256_of", lambda p: (hashed.append(p.name), real(p))[1])
    monkeypatch.setattr(integrity, "_boot", lambda: "another")
    load()
    assert "params_shard_0.bin" in hashed
    hashed.clear()
    packed = loading.pack_dir(artifact.read_manifest(folder))
    packed.mkdir(parents=True)
    (packed / "packed-0.bin").touch()
    monkeypatch.setattr(integrity, "_boot", lambda: "a third")
    load()
    assert "model.so" in hashed and "params_shard_0.bin" not in hashed


def test_a_damaged_stamp_knows_nothing(load, folder, cache):
    load()
    (stamp,) = (cache / "verified").iterdir()
    for text in ("", "[]", "{}", '{"files": 3}', '{"files": {"model.so": 7}}', "\xff"):
        stamp.write_text(text)
        load()
    (folder / "model.so").write_bytes(b"LIBRARY")
    with pytest.raises(ArtifactError, match=r"model\.so has changed"):
        load()


def test_a_library_that_is_cut_is_not_opened(folder, monkeypatch):
    """dlopen of it is a SIGBUS."""
    monkeypatch.setattr(loading, "open_core", lambda: pytest.fail("opened"))
    (folder / "model.so").write_bytes(b"lib")
    with pytest.raises(ArtifactError, match=r"model\.so has 3 bytes, not 7"):
        LoadedModel.load(folder)


def test_what_is_damaged_when_it_is_used_is_repaired_once(folder, monkeypatch, caplog):
    thorough = []
    monkeypatch.setattr(jit, "compiled", lambda _, **o: thorough.append(o["thorough"]) or folder)
    outcomes = iter([ArtifactError("weights have changed"), FakeCore(saying([], 7), context=512)])

    def factory(*_):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    LoadedModel.load("demo", core_factory=factory).close()
    assert thorough == [False, True]
    assert "weights have changed" in caplog.text and "built again" in caplog.text
    outcomes = iter([ArtifactError("a")] * 2)
    with pytest.raises(ArtifactError):
        LoadedModel.load("demo", core_factory=factory)
    outcomes = iter([ArtifactError("a")])
    with pytest.raises(ArtifactError):  # a folder of the caller's own
        LoadedModel.load(folder, core_factory=factory)


def test_a_read_only_cache_is_no_obstacle(load, cache):
    cache.write_text("not a folder")
    load()


def test_without_a_folder_for_them_weights_are_packed_in_memory(folder, cache, monkeypatch, caplog):
    cache.write_text("not a folder")
    opened = []
    monkeypatch.setattr(loading, "open_runtime", lambda kind: None)
    monkeypatch.setattr(loading, "open_core", lambda: "core")
    monkeypatch.setattr(loading, "NativeCore", lambda *arguments: opened.append(arguments))
    loading.native_core(folder, artifact.read_manifest(folder), "cpu", {}, {})
    assert opened[0][4] == {} and "packed at each load" in caplog.text


def test_the_core_checks_what_it_maps_once_a_start_of_the_machine(folder, monkeypatch):
    manifest = artifact.read_manifest(folder)
    packed = loading.pack_dir(manifest)
    monkeypatch.setattr(loading, "open_runtime", lambda kind: None)
    monkeypatch.setattr(loading, "open_core", lambda: "core")
    checked = []

    def core(*arguments):
        checked.append("check_weights" not in arguments[4])
        if not (packed / "packed-1.bin").exists():
            (packed / "packed-1.bin").touch()

    monkeypatch.setattr(loading, "NativeCore", core)

    def load():
        loading.native_core(folder, manifest, "cpu", {}, {})
        return checked[-1]

    assert [load(), load(), load()] == [True, False, False]
    (packed / "packed-1.bin").write_text("x")
    assert [load(), load()] == [True, False]
    (folder / "params_shard_0.bin").touch()
    assert [load(), load()] == [True, False]
    monkeypatch.setattr(integrity, "_boot", lambda: "another")
    assert [load(), load()] == [True, False]
    monkeypatch.setattr(integrity, "_boot", lambda: "")  # the system does not tell
    assert [load(), load()] == [True, True]


def test_packed_weights_that_are_rebuilt_are_logged(folder, cache, monkeypatch, caplog):
    manifest = artifact.read_manifest(folder)
    packed = loading.pack_dir(manifest)
    monkeypatch.setattr(loading, "open_runtime", lambda kind: None)
    monkeypatch.setattr(loading, "open_core", lambda: "core")
    names = iter(["packed-1.bin", "packed-2.bin", "packed-2.bin"])

    def core(*_):
        write_atomically(packed / next(names), "new")

    monkeypatch.setattr(loading, "NativeCore", core)
    for logged in (False, False, True):
        loading.native_core(folder, manifest, "cpu", {}, {})
        assert ("packed-2.bin was damaged" in caplog.text) is logged
    assert [p.name for p in packed.iterdir()] == ["packed-2.bin"]  # the first was of older weights


def test_what_is_not_compiled_goes_to_the_compiler(load, folder, tmp_path, monkeypatch):
    calls = []

    def compiled(model, **options):
        calls.append((model, options))
        return folder

    monkeypatch.setattr(jit, "compiled", compiled)
    options = {"target": "cpu", "quant": "q4f16_1", "kv_dtype": "int8", "activations": "float"}
    model, _ = load("hf://org/name", **options)
    assert model.name == "small"
    options |= {"thorough": False}
    assert calls == [("hf://org/name", options)]


def test_packed_weights_belong_to_the_content(folder, cache):
    manifest = artifact.read_manifest(folder)
    first = loading.pack_dir(manifest)
    assert first.parent == cache / "packed"
    artifacts.edit(folder, lambda raw: raw["files"]["model.so"].update(sha256="0" * 64))
    assert loading.pack_dir(artifact.read_manifest(folder)) != first


def test_the_core_opens_the_best_library_of_this_machine(folder, monkeypatch):
    variant = {"name": "cpu:x86-64-v4", "features": ["avx512f"], "library": "model.v4.so"}
    artifacts.edit(folder, lambda raw: raw["target"].update(variants=[variant]))
    artifacts.edit(
        folder, lambda raw: raw["files"].update({"model.v4.so": raw["files"]["model.so"]})
    )
    manifest = artifact.read_manifest(folder)
    opened = []
    monkeypatch.setattr(loading, "open_runtime", lambda kind: None)
    monkeypatch.setattr(loading, "open_core", lambda: "core")
    monkeypatch.setattr(loading, "NativeCore", lambda *arguments: opened.append(arguments))
    for features in ({"avx2"}, {"avx2", "avx512f"}):
        monkeypatch.setattr(variants, "cpu_features", lambda: frozenset(features))  # noqa: B023
        loading.native_core(folder, manifest, "cpu", {}, {})
    assert [library for _, library, *_ in opened] == [folder / "model.so", folder / "model.v4.so"]
    # Their packed weights may differ.
    first, second = (options["pack_dir"] for *_, options, _, _ in opened)
    assert first != second


@pytest.mark.parametrize(
    ("kind", "device"), [("llvm", "cpu"), ("cuda", "cuda:0"), ("vulkan", "vulkan:0")]
)
def test_device(folder, kind, device):
    artifacts.edit(folder, lambda raw: raw["target"].update(kind=kind))
    assert loading.device_of(artifact.read_manifest(folder)) == device


@pytest.mark.parametrize(
    ("context", "longest", "requested", "said"),
    [
        (1024, 1024, 5000, "demo ends at 1024 tokens: --context takes 1 to 1024, or auto."),
        (512, 1024, 5000, "(the model itself ends at 1024: compile with --context 1024 to have "),
        (512, 1024, 600, "compiled for at most 512 (compile with --context 600 to have more)."),
        (512, None, 600, "compiled for at most 512 (compile with --context 600 to have more)."),
    ],
)
def test_a_context_beyond_the_models_differs_from_one_beyond_the_compiled(
    context, longest, requested, said
):
    planned = {"context": context} | ({"longest": longest} if longest else {})
    manifest = SimpleNamespace(name="demo", deployment=planned)
    with pytest.raises(UsageError, match=re.escape(said)) as raised:
        loading.sized(manifest, {"context": requested}, memory.Room(None))
    assert f"context is {requested}, demo" in str(raised.value)


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
