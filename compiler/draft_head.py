"""Joins a model's folder with an EAGLE-3 head, so that later steps see one model.

    config.json               the model's, with the head's in the field `wherry_draft_head`
    tokenizer.json, ...       the model's other files, except weights
    places.safetensors        places of the model's tokens in the head's vocabulary
    wherry-draft-head.json    the paths of both folders

`open_checkpoint` finds the weights through wherry-draft-head.json, which is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wherry.base import settings
from wherry.base.progress import Progress
from wherry.cache.entries import safe
from wherry.errors import ModelError
from wherry.hub.file_names import DRAFT_HEAD, DRAFT_HEAD_FIELD, DRAFT_PLACES

from .checkpoint.folder import CONFIG, ModelFolder, WithHead, write_folder
from .checkpoint.formats import open_checkpoint
from .checkpoint.text_part import text_part
from .model_folder import model_folder

if TYPE_CHECKING:
    from .checkpoint.tensors import Checkpoint

_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt", ".gguf", ".index.json")
_INTEGERS = ("I64", "I32", "int64", "int32")  # as safetensors and PyTorch call them
_LAYERS = ("midlayer", "layers.0")  # names of the layer in SpecForge's layout, and in speculators'


def joined(
    folder: ModelFolder,
    head: str | None,
    progress: Progress | None = None,
    *,
    home: Path | None = None,
) -> ModelFolder:
    """Return a folder of the model in `folder` with the head `head`; without a head, `folder`.

    Args:
        folder: the model's folder.
        head: a folder, or hf://ORG/NAME[@REVISION]; None: none.
        progress: called with the phase, the steps done, and the steps in total.
        home: where the folder is made; None: in the cache.

    Raises:
        ModelError: there is no head, or it cannot be read.
    """
    if head is None:
        return folder
    source = model_folder(head, progress)
    checkpoint = open_checkpoint(source)
    record, places = _described(source, checkpoint, folder.config)
    config = {**folder.config, DRAFT_HEAD_FIELD: record}
    own = folder.path
    paths = {"model": str(own.resolve()), "head": str(source.path.resolve())}
    given = sorted(p for p in own.iterdir() if p.is_file() and not p.name.endswith(_WEIGHTS))
    files = [[p.name, p.stat().st_size, p.stat().st_mtime_ns] for p in given]
    state = json.dumps([config, paths, files, checkpoint.fingerprint], sort_keys=True)
    key = hashlib.sha256(state.encode()).hexdigest()
    place = hashlib.sha256(json.dumps(paths).encode()).hexdigest()[:12]
    path = (home or settings.cache_dir() / "weights") / f"{safe(own.name)}-head-{place}"

    def contents() -> dict[str, bytes | str]:
        files: dict[str, bytes | str] = {p.name: p.read_bytes() for p in given}
        files[CONFIG] = json.dumps(config, indent=2)
        if places is not None:
            files[DRAFT_PLACES] = _safetensors("places", places)
        return {**files, DRAFT_HEAD: json.dumps({**paths, "key": key})}

    what = f"{own.name} with the draft head {source.path.name}"
    return replace(
        folder,
        path=write_folder(path, DRAFT_HEAD, key, contents, what),
        config=config,
        text=text_part(config),
        origin=WithHead(folder, source),
    )


def _described(
    source: ModelFolder, checkpoint: Checkpoint, model: Mapping[str, Any]
) -> tuple[dict[str, Any], NDArray[np.float32] | None]:
    """Return a `DraftHead` as a JSON object, and the places of tokens."""
    from wherry.models.drafts.eagle3 import DraftHead

    names = set(checkpoint.tensors)
    layer = next((n for n in _LAYERS if f"{n}.self_attn.q_proj.weight" in names), None)
    if layer is None or "fc.weight" not in names:
        raise ModelError(
            f"{source.path} is not an EAGLE-3 head: it has no fc.weight, or neither {_LAYERS[0]}.* "
            f"nor {_LAYERS[1]}.*. --draft-head takes the folder of a head; for a whole smaller "
            "model, type --draft."
        )
    mapped = checkpoint.tensors.get("d2t")
    if mapped and (len(mapped.shape) != 1 or not mapped.shape[0] or mapped.dtype not in _INTEGERS):
        raise ModelError(
            f"{source.path}: d2t is {mapped.dtype} {list(mapped.shape)}; it has an integer of 32 "
            "or 64 bits for each token of the head's vocabulary."
        )
    head = DraftHead(
        config=dict(source.config),
        layer=layer,
        own_embeddings="embed_tokens.weight" in names,
        vocab=None if mapped is None else mapped.shape[0],
    )
    text = model.get("text_config")
    vocab = (text if isinstance(text, dict) else model).get("vocab_size")
    places = None if mapped is None else _places(source.path, checkpoint, vocab)
    return asdict(head), places


def _safetensors(name: str, values: NDArray[np.float32]) -> bytes:
    """Return the content of a safetensors file with one tensor."""
    entry = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [0, values.nbytes]}
    header = json.dumps({name: entry}).encode()
    return len(header).to_bytes(8, "little") + header + values.astype("<f4").tobytes()


def _places(source: Path, checkpoint: Checkpoint, vocab: Any) -> NDArray[np.float32]:
    """Return the place of each of the model's tokens in the head's vocabulary, -1 without one.

    The head's token i is the model's token i + d2t[i].
    """
    offsets = checkpoint.read_raw("d2t").astype(np.int64)
    tokens = np.arange(len(offsets)) + offsets
    if type(vocab) is not int or not 0 <= tokens.min() <= tokens.max() < vocab:
        raise ModelError(
            f"{source}: d2t maps the head's tokens to {tokens.min()} to {tokens.max()}, and the "
            f"model has {vocab} tokens (vocab_size). Give a head that was trained for this model."
        )
    places = np.full(vocab, -1, np.float32)
    places[tokens] = np.arange(len(tokens), dtype=np.float32)
    return places
