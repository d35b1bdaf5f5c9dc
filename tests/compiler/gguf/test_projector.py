"""GGUF models that see: the projector's file, and the text model, against the original folder."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file

from wherry.artifact.manifest import VISION, read_manifest
from wherry.compiler.api import ModelParts, convert_model
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.gguf.folder import unfold
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.projector import open_projector
from wherry.compiler.load import describe
from wherry.compiler.weight_cache import load_state
from wherry.compiler.weight_marker import label_of
from wherry.errors import ModelError, UsageError
from wherry.hub import source
from wherry.hub.file_names import PROCESSOR
from wherry.runtime.load.loading import resolve

from ...models import test_qwen_towers as qwen
from ...models.test_towers import (
    CASES,
    PLACEHOLDER,
    Case,
    close,
    expected_features,
    features_of,
    prompt,
    save,
)
from ...support import llama_cpp
from ...support.tiny_models import Runner, compiled
from . import writing
from .test_hostile import mutant

MUTANTS = 200

CASE = Case(  # rows of whole blocks of Q8_0
    "smolvlm",
    {**CASES["smolvlm"].vision, "hidden_size": 64, "intermediate_size": 96},
    {},
    scale_factor=4,
)
CASE.vision["num_attention_heads"] = 4
NAME = "mmproj-model.gguf"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """(folder, transformers' model, tiles) of a random SmolVLM."""
    folder = tmp_path_factory.mktemp("original")
    return folder, *save(folder, CASE)


@pytest.fixture
def pair(original, tmp_path):
    """Write the two files of the model: `pair(name, **metadata)` -> the text model's."""

    def write(name: str = NAME, **given):
        file = tmp_path / "gguf" / "model.gguf"
        file.parent.mkdir(exist_ok=True)
        writing.with_projector(original[0], file, file.with_name(name), token=PLACEHOLDER, **given)
        return file

    return write


def converted(file, out, mmproj=None):
    return convert_model(str(file), out, quant="q0f32", parts=ModelParts(mmproj=mmproj))


def content(file, architecture):
    """Float tensors and the metadata of an architecture, as `writing.write` takes them."""
    read, prefix = gguf.GGUFReader(file), f"{architecture}."
    metadata = {
        name.removeprefix(prefix): field.contents()
        for name, field in read.fields.items()
        if name.startswith(prefix)
    }
    return {t.name: np.array(t.data) for t in read.tensors}, metadata


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["smolvlm", pytest.param("idefics3", marks=pytest.mark.nightly)])
def test_the_pair_computes_what_its_folder_does(name, tmp_path):
    case, folder, file = CASES[name], tmp_path / "folder", tmp_path / "model.gguf"
    model, tiles = save(folder, case)
    writing.with_projector(folder, file, tmp_path / NAME, token=PLACEHOLDER)
    out, direct = compiled(file), compiled(folder)
    features = features_of(case, out, tiles)
    np.testing.assert_array_equal(features, features_of(case, direct, tiles))
    close(features, expected_features(model, tiles))
    tokens, rows = prompt(case, len(tiles))
    logits = [
        Runner(path).step({0: tokens}, images={0: rows}, features=features)[0]
        for path in (out, direct)
    ]
    np.testing.assert_array_equal(*logits)
    assert "vision" in read_manifest(out).capabilities
    assert (out / VISION).read_bytes() == (direct / VISION).read_bytes()
    with pytest.raises(UsageError, match="Leave mmproj out"):
        resolve(out, mmproj="none")


def test_qwen_s_pair_has_the_weights_of_its_folder(tmp_path):
    case, folder, file = qwen.CASES["qwen3_vl"], tmp_path / "folder", tmp_path / "model.gguf"
    qwen.save(folder, case)
    writing.qwen3_vl(folder, file, tmp_path / NAME, token=PLACEHOLDER)
    direct, out = (converted(path, tmp_path / path.stem / "out") for path in (folder, file))
    one, other = load_state(direct), load_state(out)
    assert one.keys() == other.keys()
    for parameter, array in one.items():
        np.testing.assert_array_equal(array, other[parameter])
    given, read = (json.loads((path / VISION).read_text()) for path in (direct, out))
    # As llama.cpp bounds it: 8 to 4,096 features, of which a tower's memory has room for 2,048.
    area = (2 * case.vision["patch_size"]) ** 2
    assert read["processor"]["size"] == {"shortest_edge": 8 * area, "longest_edge": 2048 * area}
    for each in (given, read):
        for name in ("size", "image_std", "image_mean"):
            del each["processor"][name]
    assert given == read
    configs = [json.loads((path / "config.json").read_text()) for path in (direct, out)]
    assert configs[0]["mrope_section"] == configs[1]["mrope_section"] == [4, 2, 2]
    assert configs[0]["mrope_interleaved"] and configs[1]["mrope_interleaved"]


def test_frames_of_different_sizes(tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "model.gguf"
    qwen.save(folder, qwen.CASES["qwen3_vl"])
    projector = writing.qwen3_vl(folder, file, tmp_path / NAME, token=PLACEHOLDER)
    tensors, metadata = content(projector, "clip")
    tensors["v.patch_embd.weight.1"] = tensors["v.patch_embd.weight.1"][:3]
    writing.write(projector, "clip", tensors, metadata, vocabulary=lambda _: None)
    with pytest.raises(ModelError, match=r"proj\.weight\.1 \[3, 3, 4, 4\]: frames of"):
        converted(file, tmp_path / "out")


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*CASES, "qwen3_vl", "qwen3_vl_moe"])
def test_what_llama_cpp_converts(name, tmp_path):
    folder = tmp_path / name
    if name in CASES:
        save(folder, CASES[name])
    else:
        qwen.save(folder, qwen.CASES[name])
    processor = json.loads((folder / PROCESSOR).read_text())
    processor |= {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.125]}
    (folder / PROCESSOR).write_text(json.dumps(processor))
    config = json.loads((folder / "config.json").read_text())
    if name in CASES:
        config["text_config"]["architectures"] = ["LlamaForCausalLM"]  # as on the hub
    else:  # which the file does not say, but llama.cpp's program does
        area = (2 * qwen.CASES[name].vision["patch_size"]) ** 2
        size = {"shortest_edge": 8 * area, "longest_edge": 4096 * area}
        (folder / PROCESSOR).write_text(json.dumps({**processor, "size": size}))
    (folder / "config.json").write_text(json.dumps(config))
    tokens = {"model": {"vocab": {f"[{i}]": i for i in range(320)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    program = Path(__file__).with_name("to_gguf.py")
    sources = llama_cpp.sources(tmp_path)
    subprocess.run([sys.executable, program, sources, folder], check=True)
    why = folder / "model.txt"
    assert not why.exists(), why.read_text()
    (folder / "tokenizer.json").unlink()
    direct = converted(folder, tmp_path / "direct")
    out = converted(folder / "model.gguf", tmp_path / "out")
    assert (out / VISION).read_bytes() == (direct / VISION).read_bytes()
    one, other = load_state(direct), load_state(out)
    assert one.keys() == other.keys()
    for parameter, array in one.items():
        np.testing.assert_array_equal(array, other[parameter])


def test_the_bits_of_both_ways_are_equal(pair, original, tmp_path):
    ways = [
        convert_model(str(path), tmp_path / name, quant="q4f16_1")
        for name, path in {"direct": original[0], "gguf": pair()}.items()
    ]
    shards = [{p.name: p.read_bytes() for p in way.glob("params_shard_*")} for way in ways]
    assert shards[0] and shards[0] == shards[1]


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0"])
def test_types_of_tensors(kind, pair, original, tmp_path):
    out = converted(pair(kind=kind), tmp_path / "out")
    to = gguf.GGMLQuantizationType[kind]
    stored = load_file(original[0] / "model.safetensors")
    matrix = stored["model.vision_model.encoder.layers.1.mlp.fc1.weight"]
    expected = gguf.quants.dequantize(gguf.quants.quantize(matrix, to), to)
    got = load_state(out)["vision.tower.layers.1.mlp.up_proj.weight"]
    np.testing.assert_array_equal(got, expected)
    assert (got != matrix).any()


def test_the_text_model_keeps_its_bits(pair, tmp_path):
    file = pair(text_kind="Q8_0")
    seeing = convert_model(str(file), tmp_path / "seeing")
    text = convert_model(str(file), tmp_path / "text", parts=ModelParts(mmproj="none"))
    assert label_of(seeing) == label_of(text) == "Q8_0"
    shards = [{p.read_bytes() for p in out.glob("params_shard_*")} for out in (seeing, text)]
    assert shards[1] < shards[0]


def test_exchanged_names_of_old_files(pair, tmp_path):
    file = pair()
    direct = load_state(converted(file, tmp_path / "direct"))
    projector = file.with_name(NAME)
    tensors, metadata = content(projector, "clip")
    swap = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
    exchanged = {
        ".".join(swap.get(part, part) for part in name.split(".")): array
        for name, array in tensors.items()
    }
    assert exchanged["v.blk.0.ffn_up.weight"].shape == (64, 96)
    writing.write(projector, "clip", exchanged, metadata, vocabulary=lambda _: None)
    swapped = load_state(converted(file, tmp_path / "swapped"))
    assert direct.keys() == swapped.keys()
    for name, array in direct.items():
        np.testing.assert_array_equal(array, swapped[name])


class TestWhichFile:
    def test_a_named_one_elsewhere(self, pair, tmp_path):
        file = pair()
        named = tmp_path / "tower.gguf"
        file.with_name(NAME).rename(named)
        assert not (converted(file, tmp_path / "text") / VISION).exists()
        assert (converted(file, tmp_path / "out", mmproj=str(named)) / VISION).exists()

    def test_one_of_the_hub(self, pair, tmp_path, monkeypatch):
        file, repository = pair(), tmp_path / "repository"
        repository.mkdir()
        file.with_name(NAME).rename(repository / NAME)
        monkeypatch.setattr(source, "fetch", lambda *_, **__: repository)
        out = converted(file, tmp_path / "out", mmproj=f"hf://people/boat/{NAME}")
        assert (out / VISION).exists()

    def test_none(self, pair, tmp_path):
        file = pair()
        assert not (converted(file, tmp_path / "out", mmproj="none") / VISION).exists()
        assert (converted(file, tmp_path / "both") / VISION).exists()

    def test_of_several_the_one_in_float16(self, pair, tmp_path):
        pair("mmproj-model-Q8_0.gguf", kind="Q8_0")
        file = pair("mmproj-model-bf16.gguf", kind="BF16")
        with pytest.raises(ModelError, match=r"several(.|\n)*Q8_0(.|\n)*bf16(.|\n)*--mmproj FILE"):
            converted(file, tmp_path / "out")
        pair("mmproj-model-f16.gguf", kind="F16")
        tower = load_state(converted(file, tmp_path / "out"))["vision.proj.weight"]
        np.testing.assert_array_equal(tower, tower.astype(np.float16))

    def test_another_model_s_is_left_out(self, pair, tmp_path, caplog):
        file = pair(projector_type="gemma3")
        assert not (converted(file, tmp_path / "out") / VISION).exists()
        assert "has the projector 'gemma3'. Of GGUF are read: idefics3" in caplog.text
        with pytest.raises(ModelError, match=r"'gemma3'.*are read: idefics3.*--mmproj none"):
            converted(file, tmp_path / "named", mmproj=str(file.with_name(NAME)))

    def test_features_of_another_width(self, pair, tmp_path):
        file = writing.llama(tmp_path / "wide.gguf", size=128)
        projector = pair().with_name(NAME)
        with pytest.raises(ModelError, match="needs the token '<image>'"):
            converted(file, tmp_path / "out", mmproj=str(projector))

        def vocabulary(writer):
            writing.letters(writer, named={PLACEHOLDER: "<image>"})

        writing.write(file, "llama", *content(file, "llama"), vocabulary=vocabulary)
        with pytest.raises(ModelError, match=r"features of 64 elements; .* rows have 128"):
            converted(file, tmp_path / "out", mmproj=str(projector))

    def test_what_is_no_projector(self, pair, original, tmp_path):
        file = pair()
        with pytest.raises(ModelError, match="is no projector: its architecture is 'llama'"):
            converted(file, tmp_path / "out", mmproj=str(file))
        with pytest.raises(UsageError, match="there is no such file"):
            converted(file, tmp_path / "out", mmproj="boat.gguf")
        with pytest.raises(UsageError, match=r"is no GGUF\. Leave it out"):
            converted(original[0], tmp_path / "out", mmproj="none")
        with pytest.raises(ModelError, match=r"reads images or sound.*--mmproj FILE"):
            converted(file.with_name(NAME), tmp_path / "out")


def test_without_a_size_an_image_is_one_tile(pair, tmp_path, caplog):
    out = converted(pair(**{"vision.preproc_image_size": None}), tmp_path / "out")
    processor = json.loads((out / VISION).read_text())["processor"]
    assert processor["size"] == processor["max_image_size"] == {"longest_edge": 32}
    assert "preproc_image_size" in caplog.text


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"vision.image_mean": None}, "clip.vision.image_mean: missing"),
        ({"vision.image_std": [0.5, 0.5]}, "clip.vision.image_std: found"),
        ({"vision.image_std": [0.5, 0.5, 0.0]}, "clip.vision.image_std: found"),
        ({"vision.image_std": [0.5, 0.5, float("nan")]}, "clip.vision.image_std: found"),
        ({"vision.projector.scale_factor": None}, "scale_factor: missing"),
        ({"vision.projector.scale_factor": 3}, "scale_factor: 3 does not divide"),
        ({"vision.patch_size": 0}, "patch_size"),
        ({"vision.image_size": "big"}, "image_size: found 'big'"),
        ({"vision.image_size": 64}, "position_embedding"),
        ({"vision.block_count": 3}, "encoder.layers.2"),
        ({"vision.feed_forward_length": 95}, "mlp.fc1"),
        ({"vision.feature_layer": 1}, "clip.vision.feature_layer: 1"),
        ({"vision.attention.head_dim": 8}, "clip.vision.attention.head_dim: found 8"),
        ({"use_gelu": None}, "quick GELU"),
        ({"use_silu": True}, "both are true"),
        ({"has_vision_encoder": False}, "has_vision_encoder: found False"),
        ({"has_audio_encoder": True}, "has_audio_encoder: found True"),
    ],
)
def test_what_is_wrong_is_said(metadata, said, pair, tmp_path):
    with pytest.raises(ModelError, match=said):
        converted(pair(**metadata), tmp_path / "out")


def test_a_truncated_file(pair, tmp_path):
    file = pair()
    projector = file.with_name(NAME)
    data = projector.read_bytes()
    for size in (0, 100, len(data) // 2, len(data) - 1):
        projector.write_bytes(data[:size])
        said = f"{NAME}.*(ends at byte|has 100 bytes)(.|\n)*--mmproj none"
        with pytest.raises(ModelError, match=said):
            converted(file, tmp_path / "out")


def test_mutants(pair, tmp_path):
    file = pair()
    projector = file.with_name(NAME)
    data = projector.read_bytes()
    header = min(t.offset for t in read_header(projector).tensors)
    refused = 0
    for seed in range(MUTANTS):
        projector.write_bytes(mutant(data, header, random.Random(seed)))
        try:
            folder = read_folder(unfold(file, tmp_path / f"cache{seed}", str(projector)))
            tower = describe(folder).tower
            checkpoint = open_checkpoint(folder)
            tower.plan({n: s for n, s in checkpoint.shapes.items() if tower.owns(n)})
            for name in filter(tower.owns, checkpoint.tensors):
                checkpoint.read(name)
        except ModelError:
            refused += 1
    # Numbers such as the mean of a channel may be others.
    assert MUTANTS / 2 < refused < MUTANTS


def test_tensors_of_another_tower(pair):
    header = read_header(pair().with_name(NAME))
    names = {t.name for t in header.tensors}
    assert "v.blk.0.attn_q.weight" in names
    more = writing.write(
        header.path,
        "clip",
        {"v.class_embd": np.ones(4, np.float32), "v.blk.x.ln1.weight": np.ones(4, np.float32)},
        {"projector_type": "idefics3", "vision.embedding_length": 64},
        vocabulary=lambda _: None,
    )
    with pytest.raises(ModelError, match=r"not read:(.|\n)*class_embd(.|\n)*v\.blk\.x\.ln1"):
        open_projector(read_header(more))
