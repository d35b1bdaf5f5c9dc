"""A small model that reads images: a scripted core that keeps the spans it gets."""

from __future__ import annotations

import base64
import io
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image
from tokenizers import AddedToken

from wherry.runtime import MLCEngine
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .fake_core import FakeCore, saying

# SmolVLM's, which takes contents as lists alone
LISTS = (
    "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}"
    "{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}"
    "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
# the kind that takes both
BOTH = (
    "{% for t in tools or [] %}<|tool|>{{ t | tojson }}{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TILE, EDGE, ROWS = 32, 64, 4  # a tile has 4 x 4 patches, which become 2 x 2 rows
SETTINGS = {
    "model_type": "smolvlm",
    "processor": {
        "do_resize": True,
        "size": {"longest_edge": EDGE},
        "resample": 1,
        "do_image_splitting": True,
        "max_image_size": {"longest_edge": TILE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    },
    "vision_config": {"image_size": TILE, "patch_size": TILE // 4},
    "scale_factor": 2,
    "image_token": "<image>",
    "image_seq_len": ROWS,
    "library": "vision.so",
}
FAKE, GLOBAL = "<fake_token_around_image>", "<global-img>"
_TILES = [f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2)]
SPECIALS = ["<image>", FAKE, GLOBAL, *_TILES, "<|im_start|>", "<end_of_utterance>"]
SPECIALS += ["[IMG]", "[IMG_BREAK]", "[IMG_END]", "<|image_pad|>"]
SPECIALS += ["<start_of_image>", "<image_soft_token>", "<end_of_image>"]


@dataclass(frozen=True)
class Span:
    """A copy of a wherry_image."""

    first: int
    rows: int
    digest: bytes
    patches: bytes
    positions: tuple[int, ...]
    taps: int
    position_weights: tuple[float, ...]
    coordinates: tuple[int, ...]
    first_feature: int
    features: int
    grid: tuple[int, int]


class SeeingCore(FakeCore):
    """Keeps the spans of each request in `spans`."""

    def add_record(self, request_id, tokens, n, params) -> None:
        given = params.contents
        self.spans = [
            *getattr(self, "spans", ()),
            [_copied(s) for s in given.images[: given.n_images]],
        ]
        super().add_record(request_id, tokens, n, params)


def _copied(span) -> Span:
    size = span.n_patches * span.patch_bytes
    levels = np.ctypeslib.as_array(span.levels, (3, 256))
    assert levels[0, 0] == -1 and levels[2, 255] == 1

    def array(pointer, columns):  # empty for null
        return tuple(pointer[: span.n_patches * columns]) if pointer else ()

    return Span(
        span.first,
        span.rows,
        bytes(span.digest),
        bytes(span.patches[:size]),
        array(span.positions, span.taps),
        span.taps,
        array(span.position_weights, span.taps),
        array(span.coordinates, 2),
        span.first_feature,
        span.features,
        (span.grid_rows, span.grid_columns),
    )


def make_seeing(
    template: str = BOTH, *, vision=SETTINGS, context: int = 512, pages: int = 1024
) -> LoadedModel:
    """A model that reads images and says "Yes."."""
    backend = small_tokenizers.byte_level()
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    tokenizer = Tokenizer(backend, {"eos_token": "</s>"})
    core = SeeingCore(
        saying(tokenizer.encode("Yes."), backend.token_to_id("</s>")), context=context, pages=pages
    )
    files = SideFiles(tokenizer, ChatTemplate(template), vision=vision)
    return LoadedModel("seeing", core, files, max_batch=16)


@contextmanager
def seeing_engines():
    """Yields a function that builds engines as `make_seeing` builds models."""
    models = []

    def build(*args, **options):
        models.append(make_seeing(*args, **options))
        return MLCEngine.of(models[-1])

    yield build
    for model in models:
        model.close()


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def file_of(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    """A picture as a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def url_of(file: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(file).decode()}"


def part(width: int, height: int, seed: int = 0) -> dict:
    """A picture as a part of a message's content."""
    url = url_of(file_of(picture(width, height, seed)))
    return {"type": "image_url", "image_url": {"url": url}}


def text(said: str) -> dict:
    return {"type": "text", "text": said}
