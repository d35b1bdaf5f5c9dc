"""What the core gets of images of each kind: spans of a tile, soft tokens, grids, coordinates."""

from __future__ import annotations

import pytest

from wherry.runtime import RequestError

from .conftest import core_of
from .vision_model import BOTH, SETTINGS, part, seeing_engines, text

PIXELS = {k: v for k, v in SETTINGS["processor"].items() if k.startswith(("do_re", "do_no", "im"))}
PIXELS |= {"resample": 3, "rescale_factor": 1 / 255}
PIXTRAL = {
    "model_type": "pixtral",
    "processor": PIXELS | {"size": {"longest_edge": 64}, "patch_size": {"height": 4, "width": 4}},
    "spatial_merge_size": 2,
    "image_token": "[IMG]",
    "image_break_token": "[IMG_BREAK]",
    "image_end_token": "[IMG_END]",
}
GEMMA = {
    "model_type": "gemma3",
    "processor": PIXELS | {"size": {"height": 32, "width": 32}},
    "vision_config": {"image_size": 32, "patch_size": 8},
    "mm_tokens_per_image": 4,
    "boi_token": "<start_of_image>",
    "image_token": "<image_soft_token>",
    "eoi_token": "<end_of_image>",
}
QWEN = {
    "model_type": "qwen3_vl",
    "processor": PIXELS
    | {"size": {"shortest_edge": 64, "longest_edge": 4096}}
    | {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2},
    "vision_config": {"patch_size": 4, "spatial_merge_size": 2, "num_position_embeddings": 16},
    "image_token": "<|image_pad|>",
}


@pytest.fixture
def seeing():
    with seeing_engines() as build:
        yield build


def prompted(engine, *content):
    """The prompt as text, its tokens and its spans."""
    engine.chat.completions.create(messages=[{"role": "user", "content": [*content]}])
    core, tokenizer = core_of(engine.loaded), engine.loaded.tokenizer
    prompt, _ = core.added[-1]
    return tokenizer.decode(prompt, skip_special_tokens=False), prompt, core.spans[-1]


def soft(engine, prompt, name) -> list[int]:
    token = engine.loaded.tokenizer.backend.token_to_id(name)
    return [i for i, id in enumerate(prompt) if id == token]


def covered(spans) -> list[int]:
    return [span.first + i for span in spans for i in range(span.rows)]


def test_a_line_of_pixtral_is_a_span_of_the_tile(seeing):
    engine = seeing(BOTH.replace("<image>", "[IMG]"), vision=PIXTRAL)
    written, prompt, spans = prompted(engine, part(24, 16), text("Why [IMG]?"))
    assert written == (
        "<|user|>[IMG][IMG][IMG][IMG_BREAK][IMG][IMG][IMG][IMG_END]Why [IMG]?<|assistant|>"
    )
    assert covered(spans) == soft(engine, prompt, "[IMG]")[:-1]
    assert [(s.rows, s.first_feature, s.features) for s in spans] == [(3, 0, 6), (3, 3, 6)]
    assert len({(s.digest, s.patches, s.coordinates) for s in spans}) == 1
    assert spans[0].coordinates[:10] == (0, 0, 0, 1, 1, 0, 1, 1, 0, 2)
    assert {(s.positions, s.position_weights, s.grid) for s in spans} == {((), (), (0, 0))}


def test_gemmas_place_and_soft_token_differ(seeing):
    engine = seeing(BOTH.replace("<image>", "<start_of_image>"), vision=GEMMA)
    typed = "<start_of_image><image_soft_token>"
    written, prompt, spans = prompted(engine, text(typed), part(9, 50), part(50, 9))
    image = f"\n\n<start_of_image>{'<image_soft_token>' * 4}<end_of_image>\n\n"
    assert written == f"<|user|>{typed}{image}{image}<|assistant|>"
    assert covered(spans) == soft(engine, prompt, "<image_soft_token>")[1:]
    assert [(s.rows, s.first_feature, s.features, s.taps) for s in spans] == [(4, 0, 4, 1)] * 2
    assert {s.positions[:5] for s in spans} == {(0, 1, 4, 5, 2)}
    assert {s.coordinates for s in spans} == {()}


def test_qwens_image_has_a_grid_and_four_positions_a_patch(seeing):
    engine = seeing(BOTH.replace("<image>", "<|image_pad|>"), vision=QWEN)
    _, prompt, (span,) = prompted(engine, part(24, 16))
    assert covered([span]) == soft(engine, prompt, "<|image_pad|>")
    assert (span.rows, span.features, span.grid, span.taps) == (6, 6, (2, 3), 4)
    assert len(span.positions) == len(span.position_weights) == 4 * 24
    assert span.coordinates[:10] == (0, 0, 0, 1, 1, 0, 1, 1, 0, 2)
    assert span.position_weights[:4] == (1, 0, 0, 0)  # a corner of the table


def test_lines_count_for_the_context(seeing):
    engine = seeing(BOTH.replace("<image>", "[IMG]"), vision=PIXTRAL, context=64)
    with pytest.raises(RequestError, match=r"at least 64 .*images alone") as error:
        prompted(engine, part(64, 64), part(64, 64))
    assert error.value.code == "context_length_exceeded"


def test_a_thin_image_is_refused_with_its_place(seeing):
    engine = seeing(BOTH.replace("<image>", "<|image_pad|>"), vision=QWEN)
    with pytest.raises(RequestError, match=r"content\[1\].*402 x 2 pixels.*200 times") as error:
        prompted(engine, text("?"), part(402, 2))
    assert error.value.code == "invalid_image"
