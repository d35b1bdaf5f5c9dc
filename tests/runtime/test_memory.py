"""Memory is planned before a load."""

from types import SimpleNamespace

import pytest

from wherry.errors import ResourceError
from wherry.machine.devices import Device, list_devices
from wherry.machine.plugins import PLUGINS
from wherry.runtime.load import memory
from wherry.runtime.load.memory import Room

from ..support.gpu import device

MEMORY = {"weights": 1_000_000, "workspace": 0, "kv_per_token": 1000}
LAYERED = {**MEMORY, "kv_layers": 4, "largest_weight": 500_000}
CONFIG = {"context": 512, "max_batch": 8}
PLANNED = {"context": 512, "max_batch": 8, "prefill_chunk": 512, "kv_dtype": "float32"}


def model(quant="q4f16_1", kind="llvm", memory=MEMORY, **planned):
    """What a manifest says of a model."""
    target = {"name": "cpu", "kind": kind}
    known = {"target": target, "quantization": quant, "deployment": PLANNED | planned}
    return SimpleNamespace(name="small", memory=memory, capabilities=(), **known)


MANIFEST, LAYERS = model(), model(memory=LAYERED)


def test_all_contexts_if_they_fit():
    assert memory.kv_tokens(MANIFEST, CONFIG, Room(100_000_000)) == 512 * 8


def test_a_share_of_what_is_left_otherwise():
    assert memory.kv_tokens(MANIFEST, CONFIG, Room(3_000_000)) == 1000 // 16 * 16
    assert memory.kv_tokens(MANIFEST, CONFIG, Room(3_000_000, share=0.9)) == 1800 // 16 * 16


def test_the_tower_and_features_of_images_count():
    seeing = model(memory=MEMORY | {"tower": 500_000, "image_row": 1000})
    assert memory.of_images(seeing, 512) == 1_012_000
    assert memory.of_images(seeing, 100_000) == 500_000 + 8192 * 1000
    assert memory.kv_tokens(seeing, CONFIG, Room(3_000_000)) == 988 // 2 // 16 * 16
    with pytest.raises(ResourceError, match=r"needs 2\.0 MB for weights and a step"):
        memory.kv_tokens(seeing, CONFIG, Room(2_000_000))
    with pytest.raises(ResourceError, match=r"and 2\.0 MB for weights and a step"):
        memory.require(512, seeing, Room(2_100_000))
    assert memory.of_images(MANIFEST, 512) == 0


def test_too_little_says_the_numbers():
    with pytest.raises(ResourceError, match=r"needs 1\.0 MB .* 1\.0 MB are free on this machine"):
        memory.kv_tokens(MANIFEST, CONFIG, Room(1_000_100))


def test_unknown_sizes_leave_it_to_the_core():
    unknown = model(memory={})
    assert memory.kv_tokens(unknown, CONFIG, Room(1)) is None
    assert memory.kv_tokens(MANIFEST, CONFIG, Room(None)) is None


def test_a_layers_cache_is_one_tensor():
    """4 layers of 250 bytes a token."""
    assert memory.kv_tokens(LAYERS, CONFIG, Room(None, 600_000)) == 2400
    assert memory.kv_tokens(LAYERS, CONFIG, Room(10**9, 600_000)) == 2400
    assert memory.kv_tokens(LAYERS, CONFIG, Room(3_000_000, 600_000)) == 992
    assert memory.kv_tokens(LAYERS, CONFIG, Room(10**9, 10**9)) == 512 * 8


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({}, "Take another device (--target opencl, --target cpu)."),
        ({"quant": "q4f32_1", "kind": "opencl"}, "Take another device (--target cpu)."),
        (
            {"quant": "q0f16"},
            "Take smaller weights (--quant q4f16_1), or another device (--target opencl, "
            "--target cpu).",
        ),
    ],
)
def test_a_weight_beyond_the_largest_tensor_names_the_fix(fields, advice):
    with pytest.raises(ResourceError, match=r"0\.5 MB; a kernel on GPU X can have 0\.4 MB") as said:
        memory.kv_tokens(
            model(memory=LAYERED, **fields), CONFIG, Room(10**9, 400_000, where="GPU X")
        )
    assert str(said.value).endswith(f" in one tensor. {advice}")


STEP = "plan a smaller step (wherry compile MODEL --prefill-chunk 128 --max-batch 4 -o DIR)"
HALF = "plan a smaller step (wherry compile MODEL --prefill-chunk 128 -o DIR)"


@pytest.mark.parametrize(
    ("fields", "draft", "advice"),
    [
        ({}, None, f"Close something, {STEP}, or take a smaller model."),
        ({"max_batch": 2}, None, f"Close something, {HALF}, or take a smaller model."),
        (
            {"max_batch": 4, "prefill_chunk": 128},
            None,
            "Close something, or take a smaller model.",
        ),
        (
            {"quant": "q8f16_1", "max_batch": 4, "prefill_chunk": 128},
            MANIFEST,
            "Close something, leave the draft model out, take smaller weights (--quant q4f16_1), "
            "or take a smaller model.",
        ),
    ],
)
def test_too_little_for_the_weights_names_what_helps(fields, draft, advice):
    with pytest.raises(ResourceError) as said:
        memory.kv_tokens(model(**fields), CONFIG, Room(1_000_100), draft)
    assert str(said.value).endswith(f" on this machine. {advice}")


@pytest.mark.parametrize(
    ("fields", "draft", "advice"),
    [
        ({}, None, " More fits with --kv-dtype int8."),
        ({"kv_dtype": "int8"}, None, " More fits with --kv-dtype int4."),
        ({"kv_dtype": "int4"}, None, ""),
        ({"kind": "vulkan"}, None, " More fits with --kv-dtype int8."),
        (
            {"quant": "q0f32"},
            model(memory={**MEMORY, "weights": 0}),
            " More fits with --kv-dtype int8 or smaller weights (--quant q4f16_1) or no draft "
            "model.",
        ),
    ],
)
def test_too_little_for_a_context_names_what_helps(fields, draft, advice):
    with pytest.raises(ResourceError) as said:
        memory.require(500, model(**fields), Room(1_200_000), draft)
    assert str(said.value).endswith(f", or --context auto.{advice}")


def test_this_machine_has_some():
    assert memory.available() > 10_000_000
    assert memory.room("cpu").free > 10_000_000


def gpu(**changes):
    facts = {
        "name": "GPU X",
        "kind": "vulkan",
        "memory_bytes": 8_000_000_000,
        "available_bytes": None,
        "largest_buffer_bytes": 4_000_000_000,
        "discrete": True,
        "driver": "1",
        "software": False,
        "threads_per_block": 1024,
        "code": None,
    }
    return Device(**{**facts, **changes})


def test_memory_of_a_device(monkeypatch):
    devices = [
        gpu(),
        gpu(available_bytes=5_000_000_000),
        gpu(discrete=False, available_bytes=10**18),
    ]
    monkeypatch.setattr(memory, "list_devices", lambda kind: devices)
    assert memory.room("vulkan:0") == Room(8_000_000_000, 4_000_000_000, 0.9, "GPU X")
    assert memory.room("vulkan:1").free == 5_000_000_000
    shared = memory.room("vulkan:2")
    assert 10_000_000 < shared.free < 10**15 and shared.share == 0.5
    assert memory.room("vulkan:3").free is None  # opening it is the error
    assert memory.room("rocm:0").free is None


@pytest.mark.gpu
@pytest.mark.parametrize("kind", PLUGINS)
def test_the_device_is_queried(kind):
    device(kind)
    it = list_devices(kind)[0]
    there = memory.room(f"{kind}:0")
    assert 10_000_000 < there.free <= it.memory_bytes
    assert (there.largest, there.where) == (it.largest_buffer_bytes, it.name)
