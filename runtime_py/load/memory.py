"""Plans the memory of the machine or of its device before a model is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from wherry.errors import ResourceError
from wherry.machine.devices import KINDS, list_devices
from wherry.machine.host_memory import available

from . import relief

PAGE = 16  # tokens in a page; a KV cache consists of whole pages
# share of the memory after the weights that the KV cache takes; other programs need the rest
SHARE = 0.5
SHARE_DISCRETE = 0.9  # share that the KV cache takes on a device with its own memory
SHARE_REQUESTED = 0.9  # share that the KV cache takes for a context that the user requested


@dataclass(frozen=True, slots=True)
class Room:
    """The memory that a device offers to a model."""

    free: int | None  # free bytes; None: unknown
    largest: int | None = None  # bytes of the largest tensor that the device allows; None: no limit
    share: float = SHARE  # share of the memory after the weights that the KV cache takes
    where: str = "this machine"


def room(device: str) -> Room:
    """Return the memory that a device, such as "cpu" or "vulkan:0", offers to a model.

    A device that shares the host's memory has no more than the host. Errors as in `list_devices`.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return Room(available())
    devices = list_devices(kind) if kind in KINDS else []
    index = index or "0"
    # opening the device reports the wrong index later
    if not index.isdecimal() or int(index) >= len(devices):
        return Room(None)
    it = devices[int(index)]
    free = it.memory_bytes if it.available_bytes is None else it.available_bytes
    host = None if it.discrete else available()
    return Room(
        free if host is None else min(free, host),
        it.largest_buffer_bytes,
        SHARE_DISCRETE if it.discrete else SHARE,
        it.name,
    )


class Declared(relief.ModelFacts, Protocol):
    """The facts about a model that a memory plan needs; a manifest has them, or its forecast."""

    @property
    def name(self) -> str:
        """Return the model's name."""

    @property
    def memory(self) -> Mapping[str, int]:
        """Return the bytes of the weights, of one token's KV cache, of a step, and of images."""

    @property
    def capabilities(self) -> Sequence[str]:
        """Return what the model can: "mtp" if it drafts tokens by itself."""


def kv_tokens(
    manifest: Declared, config: Mapping[str, Any], there: Room, draft: Declared | None = None
) -> int | None:
    """Plan the tokens of the KV cache: each request's whole context if that fits, else what fits.

    Args:
        manifest: has `memory`: bytes of weights, of one token's KV cache, of a step.
        config: the engine's configuration, with context and max_batch.
        there: the memory of the device.
        draft: the draft model, whose KV cache holds the same number of tokens.

    Returns:
        The number of tokens; None if the manifest or the device does not tell its sizes.

    Returns:
        Returns None if the manifest or the device does not tell.

    Raises:
        ResourceError: the weights and one page do not fit, or one weight is too large.
    """
    models = [manifest] if draft is None else [manifest, draft]
    per_token = sum(map(_per_token, models))
    if not per_token or "context" not in config:
        return None
    tokens: int = config["context"] * config.get("max_batch", 1)
    if there.largest is not None:
        tokens = min(tokens, *(_of_one_tensor(m, there.largest, there.where) for m in models))
    if there.free is None:
        return tokens if there.largest is not None else None
    fixed = _fixed(models, config.get("max_batch", 1)) + _spare(manifest, config, draft)
    fixed += of_images(manifest, config["context"])
    left = _pages_of(there.free - fixed, there.share, per_token)
    if left < PAGE:
        raise ResourceError(
            f"{manifest.name} needs {_mb(fixed)} for weights and a step, and "
            f"{_mb(per_token * PAGE)} for a page of its cache; {_mb(there.free)} are free on "
            f"{there.where}. {relief.of_weights_and_step(manifest, draft=draft is not None)}"
        )
    return min(tokens, left)


def largest_context(manifest: Declared, there: Room, draft: Declared | None = None) -> int | None:
    """Return the longest context in tokens that fits, at most the compiled one.

    It uses SHARE_REQUESTED of the memory that the weights leave, more than the default. Returns
    None if the manifest or the device does not tell its sizes; only the compiled context is known
    then. Errors as in `kv_tokens`.
    """
    most = manifest.deployment.get("context")
    if most is None:
        return None
    requested_share = replace(there, share=max(there.share, SHARE_REQUESTED))
    tokens = kv_tokens(manifest, {"context": most}, requested_share, draft)
    return None if tokens is None else min(int(most), tokens)


def require(context: int, manifest: Declared, there: Room, draft: Declared | None = None) -> None:
    """Raise an error if a context does not fit: a context is neither cut nor swapped out.

    Raises:
        ResourceError: the message has the largest context that fits.
    """
    largest = largest_context(manifest, there, draft)
    if largest is None or context <= largest:
        return
    models = [manifest] if draft is None else [manifest, draft]
    per_token = sum(map(_per_token, models))
    fixed = _fixed(models, 1) + of_images(manifest, context)
    more = relief.of_a_context(manifest, draft=draft is not None)
    raise ResourceError(
        f"A context of {context:,} tokens takes {_mb(per_token * context)}, and {_mb(fixed)} for "
        f"weights and a step; {_mb(there.free or 0)} are free on {there.where}. The largest that "
        f"fits has {largest:,}: --context {largest}, or --context auto. {more}".rstrip()
    )


# What the core reserves for snapshots of a recurrent state (engine/cache/kv_cache.cc): a share of
# the KV cache, and a few more than the slots of the running sequences.
SNAPSHOT_SHARE, FEW_SNAPSHOTS = 0.25, 2
SPARE_SLOTS = 4  # most slots for the states before draft tokens (engine/model/metadata.h)


def _per_token(model: Declared) -> int:
    """Return the bytes of one token's KV cache, with its share of recurrent snapshots."""
    size = model.memory.get("kv_per_token", 0)
    return int(size * (1 + SNAPSHOT_SHARE)) if model.memory.get("slot") else size


def recurrent(model: Declared, sequences: int, tokens: int) -> int:
    """Return the bytes of the recurrent state for a KV cache of `tokens`, with snapshots."""
    slot = model.memory.get("slot", 0)
    if not slot:
        return 0
    snapshots = int(model.memory.get("kv_per_token", 0) * tokens * SNAPSHOT_SHARE)
    return slot * (sequences + FEW_SNAPSHOTS) + snapshots


# rows of image features that the core keeps, unless it is told otherwise (engine/config/config.cc)
IMAGE_ROWS = 8192


def of_images(model: Declared, context: int) -> int:
    """Return the bytes of a model's tower, and of the image features that stay in memory."""
    rows = min(context, IMAGE_ROWS)
    return model.memory.get("tower", 0) + model.memory.get("image_row", 0) * rows


def _fixed(models: list[Declared], sequences: int) -> int:
    """Return the bytes of weights, of a step, and of the recurrent state of all sequences."""
    parts = sum(m.memory.get(part, 0) for m in models for part in ("weights", "workspace"))
    return parts + sum(m.memory.get("slot", 0) * (sequences + FEW_SNAPSHOTS) for m in models)


def _spare(model: Declared, config: Mapping[str, Any], draft: Declared | None) -> int:
    """Return the bytes of the recurrent states before draft tokens, if requests have any."""
    drafts = config.get("max_drafts", int(draft is not None or "mtp" in model.capabilities))
    slots = min(config.get("max_batch", 1), SPARE_SLOTS) if drafts else 0
    return model.memory.get("slot", 0) * slots


def _pages_of(free: int, share: float, per_token: int) -> int:
    """Return the tokens of the whole pages that fit into a share of the memory, in bytes."""
    return int(free * share) // per_token // PAGE * PAGE


def _of_one_tensor(manifest: Declared, largest: int, where: str) -> int:
    """Return the tokens whose KV cache of one layer fits into the device's largest tensor."""
    weight = manifest.memory.get("largest_weight", 0)
    if weight > largest:
        raise ResourceError(
            f"A weight of {manifest.name} has {_mb(weight)}; a kernel on {where} can have "
            f"{_mb(largest)} in one tensor. {relief.of_a_weight(manifest)}"
        )
    # older folders do not tell the number of layers; 1 is a lower bound
    layers = manifest.memory.get("kv_layers", 1)
    tokens = largest * layers // manifest.memory["kv_per_token"] // PAGE * PAGE
    if tokens < PAGE:
        raise ResourceError(
            f"A page of the cache of {manifest.name} is more than the {_mb(largest)} that a kernel "
            f"on {where} can have in one tensor. Compile it for another device (--target cpu)."
        )
    return tokens


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
