"""What fits into the memory of the machine or of its device, known before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from wherry.devices import KINDS, list_devices
from wherry.errors import ResourceError

from . import relief
from .host_memory import available

PAGE = 16  # tokens; a cache is a whole number of pages
SHARE = 0.5  # of what the weights leave free, for the cache: others live here too
SHARE_DISCRETE = 0.9  # of a device with memory of its own
SHARE_ASKED = 0.9  # for a context that somebody has asked for


@dataclass(frozen=True, slots=True)
class Room:
    """Memory for a model."""

    free: int | None  # bytes; None: unknown
    largest: int | None = None  # bytes of one tensor; None: any
    share: float = SHARE  # of what the weights leave, for the cache
    where: str = "this machine"


def room(device: str) -> Room:
    """The memory of a device: "cpu", "vulkan:0".

    Of a device that shares the host's memory, what the host has left counts too. Raises as
    `list_devices`.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return Room(available())
    found = list_devices(kind) if kind in KINDS else []
    index = index or "0"
    if not index.isdecimal() or int(index) >= len(found):  # opening it says what is wrong
        return Room(None)
    it = found[int(index)]
    free = it.memory_bytes if it.available_bytes is None else it.available_bytes
    host = None if it.discrete else available()
    return Room(
        free if host is None else min(free, host),
        it.largest_buffer_bytes,
        SHARE_DISCRETE if it.discrete else SHARE,
        it.name,
    )


class Declared(relief.Made, Protocol):
    """A manifest, or what one would say."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes of weights, of a token's cache, of a step."""


def kv_tokens(
    manifest: Declared, config: Mapping[str, Any], there: Room, beside: Declared | None = None
) -> int | None:
    """Tokens of the cache: each request's whole context if that fits, else what fits.

    Args:
        manifest: with `memory`: bytes of weights, of a token's cache, of a step.
        config: context and max_batch.
        there: where the model will run.
        beside: a draft model, which keeps as many tokens.

    Returns:
        None where the manifest or the device does not tell.

    Raises:
        ResourceError: not even the weights and one page fit, or one weight is too large.
    """
    models = [manifest] if beside is None else [manifest, beside]
    per_token = sum(m.memory.get("kv_per_token", 0) for m in models)
    if not per_token or "context" not in config:
        return None
    tokens: int = config["context"] * config.get("max_batch", 1)
    if there.largest is not None:
        tokens = min(tokens, *(_of_one_tensor(m, there.largest, there.where) for m in models))
    if there.free is None:
        return tokens if there.largest is not None else None
    fixed = sum(m.memory.get(part, 0) for m in models for part in ("weights", "workspace"))
    left = _pages_of(there.free - fixed, there.share, per_token)
    if left < PAGE:
        raise ResourceError(
            f"{manifest.name} needs {_mb(fixed)} for weights and a step, and "
            f"{_mb(per_token * PAGE)} for a page of its cache; {_mb(there.free)} are free on "
            f"{there.where}. {relief.of_weights_and_step(manifest, draft=beside is not None)}"
        )
    return min(tokens, left)


def largest_context(manifest: Declared, there: Room, beside: Declared | None = None) -> int | None:
    """Tokens of one conversation that fit, at most those that the model was compiled for.

    More of the memory is taken than without being asked: SHARE_ASKED of what the weights leave.
    None where the manifest or the device does not tell; then the compiled context is all there is
    to go by. Raises as `kv_tokens`.
    """
    most = manifest.deployment.get("context")
    if most is None:
        return None
    asked = replace(there, share=max(there.share, SHARE_ASKED))
    tokens = kv_tokens(manifest, {"context": most}, asked, beside)
    return None if tokens is None else min(int(most), tokens)


def require(context: int, manifest: Declared, there: Room, beside: Declared | None = None) -> None:
    """Refuse a context that does not fit: nothing is cut short, and nothing spills.

    Raises:
        ResourceError: with the largest that fits.
    """
    largest = largest_context(manifest, there, beside)
    if largest is None or context <= largest:
        return
    models = [manifest] if beside is None else [manifest, beside]
    per_token = sum(m.memory["kv_per_token"] for m in models)
    fixed = sum(m.memory.get(part, 0) for m in models for part in ("weights", "workspace"))
    more = relief.of_a_context(manifest, draft=beside is not None)
    raise ResourceError(
        f"A context of {context:,} tokens takes {_mb(per_token * context)} beside {_mb(fixed)} for "
        f"weights and a step; {_mb(there.free or 0)} are free on {there.where}. The largest that "
        f"fits has {largest:,}: --context {largest}, or --context auto. {more}".rstrip()
    )


def _pages_of(free: int, share: float, per_token: int) -> int:
    """Tokens of whole pages in a share of the memory."""
    return int(free * share) // per_token // PAGE * PAGE


def _of_one_tensor(manifest: Declared, largest: int, where: str) -> int:
    """Tokens whose cache of one layer is one tensor that the device takes."""
    weight = manifest.memory.get("largest_weight", 0)
    if weight > largest:
        raise ResourceError(
            f"A weight of {manifest.name} has {_mb(weight)}; a kernel on {where} can have "
            f"{_mb(largest)} in one tensor. {relief.of_a_weight(manifest)}"
        )
    layers = manifest.memory.get("kv_layers", 1)  # an older folder does not tell: at least so many
    tokens = largest * layers // manifest.memory["kv_per_token"] // PAGE * PAGE
    if tokens < PAGE:
        raise ResourceError(
            f"A page of the cache of {manifest.name} is more than the {_mb(largest)} that a kernel "
            f"on {where} can have in one tensor. Compile it for another device (--target cpu)."
        )
    return tokens


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
