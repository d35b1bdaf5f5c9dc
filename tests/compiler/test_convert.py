"""What a conversion writes, what it refuses."""

import importlib.util
import json
import re
import shutil
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import tokenizers

from wherry.artifact.manifest import sha256_of
from wherry.compiler.convert import convert
from wherry.compiler.weight_cache import lay_out, load_state
from wherry.compiler.weight_marker import MARKER, is_converted
from wherry.errors import ArtifactError, ModelError, ResourceError, UsageError
from wherry.models.arch import Architecture, split, transpose
from wherry.quant.scheme import find, schemes
from wherry.quant.stored import StoredTensor

from ..support.slow_encoder import encode_slowly
from ..support.waiting import until

_spec = importlib.util.spec_from_file_location(
    "convert_toy", Path(__file__).with_name("convert_toy.py")
)
toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(toy)

SIZE = {"d": 64, "layers": 2, "vocab": 100}


def parameters_of(tensors):
    """The parameters in float32, made the obvious way."""
    parameters = {
        "model.embed.weight": tensors["model.wte.weight"],
        "lm_head.weight": tensors["lm_head.weight"],
    }
    for i in range(SIZE["layers"]):
        p = f"model.layers.{i}."
        parameters[p + "qkv_proj.weight"] = np.concatenate(
            [tensors[f"{p}{n}_proj.weight"] for n in "qkv"]
        )
        parameters |= {p + n: tensors[p + n] for n in ("qkv_proj.bias", "norm.weight")}
    return parameters


def run(source, out, scheme="q4f16_1", *, progress=None, **options):
    options = {"parameters": toy.parameters(**SIZE)} | options
    convert(toy.weights(source, scheme=scheme, **options), out, progress=progress)
    return load_state(out)


@pytest.fixture
def source(tmp_path):
    return toy.write_folder(tmp_path / "hf", toy.checkpoint(**SIZE), **SIZE)


@pytest.mark.parametrize("scheme", schemes().values(), ids=lambda s: s.name)
@pytest.mark.parametrize("shards", [1, 3])
def test_every_parameter_is_encoded(tmp_path, scheme, shards):
    tensors = toy.checkpoint(**SIZE)
    source = toy.write_folder(tmp_path / "hf", tensors, shards=shards, **SIZE)
    state = run(source, tmp_path / "out", scheme.name)
    want = {}
    for name, w in parameters_of(tensors).items():
        if scheme.quantizes(name, w.shape):
            encoded = encode_slowly(scheme, w)
            want |= {name.removesuffix("weight") + s: a for s, a in encoded.items()}
        else:
            want[name] = w.astype(scheme.float_dtype)
    assert set(state) == set(want)
    for name, array in want.items():
        assert state[name].dtype == array.dtype
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_the_folder_and_its_marker(source, tmp_path):
    out = tmp_path / "out"
    assert not is_converted(out)
    run(source, out)
    assert is_converted(out)
    assert sorted(p.name for p in out.iterdir()) == [
        "chat_template.jinja",
        "config.json",
        "params_shard_0.bin",
        "tensor-cache.json",
        "tokenizer.json",
        MARKER,
    ]
    marker = json.loads((out / MARKER).read_text())
    assert marker["scheme"] == "q4f16_1"
    assert set(marker["files"]) == {p.name for p in out.iterdir()} - {MARKER}
    for name, said in marker["files"].items():
        assert said == {"size": (out / name).stat().st_size, "sha256": sha256_of(out / name)}
    assert (out / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()


def test_tvm_reads_the_folder(source, tmp_path):
    import tvm

    state = run(source, tmp_path / "out")
    load, get = (tvm.get_global_func(f"vm.builtin.tensor_cache.{n}") for n in ("load", "get"))
    load(str(tmp_path / "out"), tvm.cpu().dlpack_device_type(), 0)
    for name, array in state.items():
        np.testing.assert_array_equal(get(name).numpy(), array)


def test_nothing_is_done_twice(source, tmp_path):
    out = tmp_path / "out"
    run(source, out)
    times = {p.name: p.stat().st_mtime_ns for p in out.iterdir()}
    run(source, out, progress=lambda *a: pytest.fail("worked again"))
    assert times == {p.name: p.stat().st_mtime_ns for p in out.iterdir()}


@pytest.mark.parametrize("damage", ["marker", "shard", "bytes"])
def test_damage_is_repaired(source, tmp_path, damage):
    out = tmp_path / "out"
    run(source, out)
    good = {p.name: p.read_bytes() for p in out.iterdir()}
    shard = out / "params_shard_0.bin"
    if damage == "marker":
        (out / MARKER).write_text("{")
    elif damage == "shard":
        shard.unlink()
    else:  # same size, other content: only noticed when something else made it start over
        shard.write_bytes(bytes(shard.stat().st_size))
        (out / "tokenizer.json").unlink()
    run(source, out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == good


def test_another_scheme_or_source_starts_clean(source, tmp_path):
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    run(source, out, "q0f32")
    run(source, out, "q4f16_1")
    (source / "tokenizer_config.json").write_text("{}")
    run(source, out)
    (source / "tokenizer_config.json").unlink()
    toy.save_file(toy.checkpoint(**SIZE, seed=1), source / "model.safetensors")
    run(source, out)
    run(source, fresh)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        p.name: p.read_bytes() for p in fresh.iterdir()
    }


def test_another_tokenizer_is_copied_and_the_weights_are_kept(source, tmp_path):
    out = tmp_path / "out"
    run(source, out)
    other = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    other.save(str(source / "tokenizer.json"))
    (source / "merges.txt").write_text("a b")
    (source / "chat_template.jinja").unlink()
    run(source, out, progress=lambda *a: pytest.fail("encoded again"))
    assert (out / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()
    assert (out / "merges.txt").is_file() and not (out / "chat_template.jinja").exists()
    assert is_converted(out)


@pytest.mark.parametrize("text", ['{"version": "1.0", "model": ', "[]"])
def test_a_damaged_tokenizer_is_refused_before_anything_is_written(source, tmp_path, text):
    (source / "tokenizer.json").write_text(text)
    named = re.escape(str(source / "tokenizer.json"))
    with pytest.raises(ModelError, match=f"{named} cannot be read"):
        run(source, tmp_path / "out", progress=lambda *a: pytest.fail("encoded"))
    assert not (tmp_path / "out").exists()


def test_bfloat16_and_half_are_read(tmp_path):
    import ml_dtypes

    tensors = toy.checkpoint(**SIZE)
    source = tmp_path / "hf"
    for dtype in (ml_dtypes.bfloat16, np.float16):
        short = {n: t.astype(dtype) for n, t in tensors.items()}
        toy.write_folder(source, short, **SIZE)
        state = run(source, tmp_path / "out", "q0f32")
        for name, w in parameters_of({n: t.astype(np.float32) for n, t in short.items()}).items():
            np.testing.assert_array_equal(state[name], w)


def test_split_and_transposed_tensors(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "fc.weight": rng.standard_normal((40, 96)).astype("f4"),
        "wide.weight": rng.standard_normal((8, 30)).astype("f4"),
        "tall.weight": rng.standard_normal((30, 8)).astype("f4"),
        "scalar": np.array(3, "f4"),
    }
    source = toy.write_folder(tmp_path / "hf", tensors, **SIZE)
    arch = Architecture(
        name="toy",
        config=toy.ToyConfig,
        model=object,
        weights=(
            transpose("up.weight", "fc.weight"),
            split("wide.weight", "a.weight", "b.weight", axis=1),
            split("tall.weight", "c.weight", "d.weight"),
        ),
    )
    shapes = {"up.weight": (96, 40), "a.weight": (8, 10), "b.weight": (8, 20)}
    shapes |= {"c.weight": (9, 8), "d.weight": (21, 8), "scalar": ()}
    state = run(source, tmp_path / "out", "q0f32", arch=arch, parameters=shapes)
    np.testing.assert_array_equal(state["up.weight"], tensors["fc.weight"].T)
    np.testing.assert_array_equal(state["a.weight"], tensors["wide.weight"][:, :10])
    np.testing.assert_array_equal(state["b.weight"], tensors["wide.weight"][:, 10:])
    np.testing.assert_array_equal(state["c.weight"], tensors["tall.weight"][:9])
    np.testing.assert_array_equal(state["d.weight"], tensors["tall.weight"][9:])
    assert state["scalar"].shape == () and state["scalar"] == 3


def test_small_blocks_give_the_same(tmp_path, source, monkeypatch):
    at_once = run(source, tmp_path / "a")
    monkeypatch.setattr("wherry.compiler.checkpoint.assemble.BLOCK_BYTES", 3 * 64 * 4)
    for name, array in run(source, tmp_path / "b").items():
        np.testing.assert_array_equal(array, at_once[name])


def test_what_is_exact_keeps_its_bits_whatever_the_scheme(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    w = {name: rng.standard_normal((300, 32)).astype("f4") for name in ("a.weight", "b.weight")}
    w["bias"] = (1e-9 * rng.standard_normal(300)).astype("f4")  # nothing of it is left in a half
    source = toy.write_folder(tmp_path / "hf", w, **SIZE)
    monkeypatch.setattr("wherry.compiler.checkpoint.assemble.BLOCK_BYTES", 32 * 4 * 7)
    shapes = {name: array.shape for name, array in w.items()}
    state = run(source, tmp_path / "out", parameters=shapes, exact=frozenset({"a.weight", "bias"}))
    for name in ("a.weight", "bias"):
        assert state[name].dtype == np.float32
        np.testing.assert_array_equal(state[name], w[name])
    expected = find("q4f16_1").encode(w["b.weight"])
    np.testing.assert_array_equal(state["b.q_weight"], expected["q_weight"])


def test_a_tied_copy_has_to_be_equal(tmp_path):
    tensors = toy.checkpoint(**SIZE)
    shapes = toy.parameters(**SIZE)
    del shapes["lm_head.weight"]
    source = toy.write_folder(tmp_path / "hf", tensors, tie_word_embeddings=True, **SIZE)
    with pytest.raises(ModelError, match=r"lm_head.weight and model.wte.weight differ"):
        run(source, tmp_path / "out", parameters=shapes)
    tensors["lm_head.weight"] = tensors["model.wte.weight"].copy()
    toy.write_folder(source, tensors, tie_word_embeddings=True, **SIZE)
    assert "lm_head.q_weight" not in run(source, tmp_path / "out", parameters=shapes)
    del tensors["lm_head.weight"]
    toy.write_folder(source, tensors, tie_word_embeddings=True, **SIZE)
    state = run(source, tmp_path / "out")
    np.testing.assert_array_equal(state["lm_head.q_weight"], state["model.embed.q_weight"])


@pytest.mark.parametrize(
    ("value", "scheme", "message"),
    [
        (1e6, "q4f16_1", r"up to 1e\+06, .*Type: --quant q4f32_1"),
        (1e8, "q8f16_1", r"up to 1e\+08, .*Type: --quant q8f32_1"),
        (-65536, "q0f16", "up to 65536, which q0f16 cannot hold.* Type: --quant q0f32"),
        (np.nan, "q4f32_1", "the checkpoint is damaged"),
        (np.inf, "q0f32", "the checkpoint is damaged"),
    ],
)
def test_numbers_that_do_not_fit(tmp_path, value, scheme, message):
    tensors = toy.checkpoint(**SIZE)
    tensors["model.layers.1.k_proj.weight"][3, 4] = value
    source = toy.write_folder(tmp_path / "hf", tensors, **SIZE)
    with pytest.raises(ModelError, match=message) as caught:
        run(source, tmp_path / "out", scheme)
    assert "model.layers.1.qkv_proj.weight" in str(caught.value)
    assert not is_converted(tmp_path / "out")


def test_what_is_refused(source, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="is the model itself"):
        run(source, source)
    other = tmp_path / "other"
    shutil.copytree(source, other)
    with pytest.raises(UsageError, match=r"(?s)no conversion put there:.*config\.json"):
        run(source, other)
    assert not list(other.glob("params_shard_*"))
    with pytest.raises(UsageError, match="Unknown quantization"):
        run(source, tmp_path / "out", "q9")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda p: shutil._ntuple_diskusage(10, 9, 1000))
    with pytest.raises(ResourceError, match=r"need 0\.02 GB more.*wherry cache prune"):
        run(source, tmp_path / "out")


def test_shards_are_cut_and_aligned():
    def group(i, *sizes):
        return [StoredTensor(f"{i}.{j}", (n,), "uint8") for j, n in enumerate(sizes)]

    shards = lay_out([group(0, 10, 20), group(1, 100), group(2, 900, 3), group(3, 1)], limit=256)
    assert [(s.name, s.parameters, s.nbytes) for s in shards] == [
        ("params_shard_0.bin", (0, 1), 228),
        ("params_shard_1.bin", (2,), 963),
        ("params_shard_2.bin", (3,), 1),
    ]
    assert [p.offset for s in shards for p in s.tensors] == [0, 64, 128, 0, 960, 0]


def test_load_state_of_a_short_folder(source, tmp_path):
    run(source, tmp_path / "out")
    shard = tmp_path / "out" / "params_shard_0.bin"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match="bytes, not"):
        load_state(tmp_path / "out")
    with pytest.raises(ArtifactError, match=r"has no tensor-cache\.json"):
        load_state(tmp_path)


def test_load_state_widens_what_mlc_shortened(tmp_path):
    record = {"name": "a", "shape": [2], "dtype": "float32", "format": "f32-to-bf16", "nbytes": 4}
    shard = {
        "dataPath": "s.bin",
        "format": "raw-shard",
        "nbytes": 4,
        "records": [record | {"byteOffset": 0}],
    }
    (tmp_path / "tensor-cache.json").write_text(json.dumps({"records": [shard]}))
    np.array([0x3F80, 0xC040], "<u2").tofile(tmp_path / "s.bin")
    assert load_state(tmp_path)["a"].tolist() == [1.0, -3.0]


def test_two_conversions_to_one_folder_do_not_mix(source, tmp_path, caplog):
    """The second waits, and finds all of it made."""
    second, blocks = [], []

    def begin_another(what, done, total):
        blocks.append(done)
        if not second:
            arguments = {"progress": lambda *_: blocks.append("by the second")}
            second.append(Thread(target=run, args=(source, tmp_path / "out"), kwargs=arguments))
            second[0].start()
            until(lambda: "waiting for it" in caplog.text)

    run(source, tmp_path / "out", progress=begin_another)
    second[0].join()
    assert blocks and "by the second" not in blocks
    assert is_converted(tmp_path / "out")
