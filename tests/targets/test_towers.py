"""Vision towers on devices of our plugins, against transformers; and images through the core."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wherry.artifact.manifest import read_manifest
from wherry.artifact.variants import library_for, tower_for
from wherry.runtime.core.library import find_core
from wherry.runtime.load.loading import device_of

from ..engine import core as abi
from ..models import test_qwen_towers as qwen
from ..models.test_image_requests import Images
from ..models.test_towers import CASES, close, expected_features, patches, prompt, save
from ..support.gpu import KINDS, device
from ..support.tiny_models import Runner, compiled


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """A kind of devices that this machine has."""
    device(request.param)
    return request.param


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """(a case, a folder of Hugging Face's layout, transformers' model, three tiles)."""
    folder = tmp_path_factory.mktemp("idefics3")
    return CASES["idefics3"], folder, *save(folder, CASES["idefics3"])


@pytest.mark.gpu
class TestTowers:
    @pytest.mark.nightly
    def test_logits_with_features_are_those_of_transformers(self, kind, seen):
        case, folder, model, tiles = seen
        library = compiled(folder, target=kind)
        tower = Runner(library, device=kind, library=tower_for)
        features = np.concatenate([tower.see(*patches(case, tile)) for tile in tiles])
        close(features, expected_features(model, tiles))
        tokens, rows = prompt(case, len(tiles))
        got = Runner(library, device=kind).step({0: tokens}, images={0: rows}, features=features)
        with torch.no_grad():
            pixels = torch.tensor(np.stack(tiles))[None]
            expected = model(input_ids=torch.tensor([tokens]), pixel_values=pixels).logits[0]
        close(got[0], expected.numpy())

    @pytest.mark.by_day("opencl")
    def test_four_bits_with_a_tower_of_halves_and_positions_of_axes(self, kind, tmp_path):
        case = qwen.CASES["qwen3_vl"]
        model = qwen.save_rounded(tmp_path, case)
        library = compiled(tmp_path, quant=qwen.FOUR_BITS, target=kind)
        tiles = case.tiles(*qwen.GRIDS[1:])
        given = qwen.prompt(tiles)
        tower = Runner(library, device=kind, library=tower_for)
        features = qwen.features_of(case, tower, tiles)
        close(features, qwen.expected_features(model, tiles))
        run, parts = Runner(library, device=kind), []
        at_once = qwen.logits_of(run, given, features)
        expected = given.expected(model, tiles)  # activations are float16 between kernels
        assert np.abs(at_once - expected).max() <= 2e-3 * np.abs(expected).max()
        run = Runner(library, device=kind)
        for start, stop in ((0, 9), (9, len(given.tokens) - 1), (len(given.tokens) - 1, None)):
            part = slice(start, stop)
            own = qwen.Prompt(given.tokens[part], given.rows[part], given.positions[part])
            parts.append(qwen.logits_of(run, own, features))
        np.testing.assert_array_equal(np.concatenate(parts), at_once)

    @pytest.mark.by_day("opencl")
    def test_the_core_gives_the_tokens_of_the_cpu(self, kind, seen):
        case, folder, _model, _tiles = seen
        rng = np.random.default_rng(6)
        size = case.vision["image_size"]
        tiles = [rng.integers(0, 256, (3, size, size)).astype(np.uint8) for _ in range(3)]
        tokens, rows = prompt(case, len(tiles))
        images = Images(case, tiles, rows)
        given = images.params() | {"temperature": 0, "max_tokens": 8}
        outputs = {}
        for target in ("cpu", kind):
            library = compiled(folder, target=target)
            manifest = read_manifest(library)
            options = {"vision": str(library / (tower_for(manifest) or "")), "threads": 1}
            model = abi.Model(
                abi.load_library(find_core()),
                library / library_for(manifest),
                library,
                options,
                device_of(manifest),
            )
            outputs[target] = model.generate([tokens] * 2, {"max_batch": 2}, **given)
            model.free()
        assert outputs[kind] == outputs["cpu"]
