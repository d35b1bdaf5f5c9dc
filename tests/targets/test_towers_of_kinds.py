"""Towers that take coordinates, or weighted positions, and rows that see later ones, on devices."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from wherry.artifact.variants import tower_for

from ..models import test_gemma3_images as gemma3
from ..models import test_lfm2_vl as lfm2_vl
from ..models import test_pixtral as pixtral
from ..models.test_towers import close
from ..support.gpu import KINDS, device
from ..support.tiny_models import Runner, compiled

FAMILIES = {"mistral3": pixtral, "gemma3": gemma3, "lfm2_vl": lfm2_vl}


@pytest.fixture(scope="module", params=FAMILIES)
def saved(request, tmp_path_factory):
    """(a family's tests, a case, a folder of Hugging Face's layout, model, images)."""
    family = FAMILIES[request.param]
    case, folder = family.CASES[request.param], tmp_path_factory.mktemp(request.param)
    return family, case, folder, *family.save(folder, case)


def expected_of(family, case, model, images):
    """Features and logits of a prompt with all images, and what a step gets with its tokens."""
    ids = gemma3.Prompt.of(case, len(images)) if family is gemma3 else None
    tokens, rows = (ids.tokens, ids.rows) if ids else family.prompt(case, len(images))
    with torch.no_grad():
        if family is pixtral:
            features = torch.tensor(pixtral.expected_features(model, images))
            logits = model(input_ids=torch.tensor([tokens]), **pixtral.pixels(images)).logits[0]
        elif family is lfm2_vl:
            given = lfm2_vl.pixels(case, images)
            features = torch.cat([*model.model.get_image_features(**given).pooler_output])
            logits = model(input_ids=torch.tensor([tokens]), **given).logits[0]
        else:
            given = torch.tensor(np.stack(images))
            features = model.model.get_image_features(given).pooler_output.flatten(0, 1)
            logits = torch.tensor(gemma3.expected_logits(model, ids, images))
    more = {"last_visible": {0: ids.last_visible}} if ids else {}
    return features.numpy(), logits.numpy(), tokens, {"images": {0: rows}, **more}


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_logits_with_features_are_those_of_transformers(kind, saved):
    device(kind)
    family, case, folder, model, images = saved
    features, logits, tokens, given = expected_of(family, case, model, images)
    library = compiled(folder, target=kind)
    tower = Runner(library, device=kind, library=tower_for)
    got = family.features_of(case, tower, images)
    close(got, features)
    close(Runner(library, device=kind).step({0: tokens}, features=got, **given)[0], logits)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [
        pytest.param("cpu", 2e-4, marks=pytest.mark.cpu),
        *(pytest.param(kind, 0.03, marks=pytest.mark.gpu) for kind in KINDS),
    ],
)
def test_a_model_of_4_bits_has_a_tower_of_float16(kind, tolerance, saved):
    if kind != "cpu":
        device(kind)
    family, case, folder, trained, images = saved
    model = copy.deepcopy(trained)
    with torch.no_grad():
        for part in (model.model.vision_tower, model.model.multi_modal_projector):
            for p in part.parameters():
                p.copy_(p.half().float())
    features, _logits, tokens, given = expected_of(family, case, model, images)
    library = compiled(folder, quant="q4f16_1", target=kind)
    tower = Runner(library, device=kind, library=tower_for)
    got = family.features_of(case, tower, images)
    assert np.abs(got - features).max() <= tolerance * np.abs(features).max()
    text = Runner(library, device=kind)
    assert np.isfinite(text.step({0: tokens}, features=got, **given)[0]).all()
