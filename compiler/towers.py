"""Finds the vision tower of a model's folder, and what its image processor is set to.

The tower's library and weights are in the compiled folder of the text model;
`wherry-vision.json` says what a runtime has to know of it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import wherry.models.towers
from wherry.errors import ModelError, shown
from wherry.hub.file_names import PROCESSOR
from wherry.hub.folder import optional_json
from wherry.models.arch import Shape, WeightPlan
from wherry.models.towers.tower import Tower, TowerShape
from wherry.models.weights.plan import ParameterPlan, plan_weights
from wherry.targets.target import TargetPreset


@dataclass(frozen=True, slots=True)
class DescribedTower:
    """The tower of a model, as its folder describes it."""

    tower: Tower
    config: Any  # what `tower.read` returns
    config_json: Mapping[str, Any]  # of the complete model
    processor: Mapping[str, Any]  # settings of the image processor

    @property
    def shape(self) -> TowerShape:
        """Return the tower's sizes."""
        return self.tower.bounded(self.config, self.tower.shape(self.config), self.processor)

    def parameters(self) -> dict[str, Shape]:
        """Return names and shapes of the tower's parameters."""
        model = self.tower.model(self.config)
        return {name: tuple(int(d) for d in p.shape) for name, p in model.named_parameters()}

    def owns(self, name: str) -> bool:
        """Return whether a tensor of the checkpoint belongs to the tower."""
        return name.startswith(self.tower.sources)

    def plan(self, checkpoint: Mapping[str, Shape]) -> WeightPlan:
        """Plan how the checkpoint's tensors become the tower's parameters.

        A convolution whose stride is its size is a linear over the elements of a patch; over time,
        its frames are summed.

        Raises:
            ModelError: as of `plan_weights`.
        """
        frames = {n: max(s[2], 1) for n, s in checkpoint.items() if len(s) == 5}
        second = {n: f"{n}.1" for n in checkpoint if f"{n}.1" in checkpoint}  # as GGUF has it
        own = {
            n: (s[0], prod(s[1:]) // frames.get(n, 1)) if len(s) > 2 else s
            for n, s in checkpoint.items()
            if n not in second.values()
        }
        plan = plan_weights(self.tower.weights, self.parameters(), own, self.config)

        def with_frames(parameter: ParameterPlan) -> ParameterPlan:
            pieces = parameter.pieces
            more = [replace(p, name=second[p.name]) for p in pieces if p.name in second]
            for piece in more:
                first = piece.name.removesuffix(".1")
                if checkpoint[piece.name] != checkpoint[first]:
                    raise ModelError(
                        f"{piece.name} {list(checkpoint[piece.name])}: frames of {first} have "
                        f"{list(checkpoint[first])}"
                    )
            counts = [len(more) + 1, *(frames.get(piece.name, 1) for piece in pieces)]
            return replace(parameter, pieces=(*pieces, *more), frames=max(counts))

        return replace(plan, parameters=tuple(map(with_frames, plan.parameters)))

    def record(self) -> bytes:
        """Return the content of wherry-vision.json."""
        settings = self.tower.settings(self.config_json, self.config)
        kind = self.tower.kind or self.tower.name
        processor = {**self.processor, **settings.pop("processor", {})}
        content = {"model_type": kind, **settings, "processor": processor}
        if self.shape.taps > 1:
            content["position_taps"] = self.shape.taps
        return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def on_target(tower: DescribedTower | None, target: TargetPreset) -> DescribedTower | None:
    """Return the tower, if models take images on a target.

    A WebAssembly library has the engine inside, so there cannot be a second one.
    """
    return None if target.library == "wasm" else tower


@cache
def towers() -> dict[str, tuple[Tower, ...]]:
    """Return every `model_type` whose images are read, with its towers."""
    (folder,) = wherry.models.towers.__path__
    names = sorted(p.stem for p in Path(folder).glob("*.py") if "\nTOWER = " in p.read_text())
    known: Iterable[Tower] = (
        importlib.import_module(f"wherry.models.towers.{name}").TOWER for name in names
    )
    by_type: dict[str, tuple[Tower, ...]] = {}
    for tower in known:
        for name in (tower.name, *tower.aliases):
            by_type[name] = (*by_type.get(name, ()), tower)
    return by_type


def tower_of(path: Path, config: Mapping[str, Any], hidden_size: int) -> DescribedTower | None:
    """Return the tower of a folder; None: the model has none that is known, or no processor.

    Args:
        path: the folder, for its image processor's files.
        config: the complete content of config.json.
        hidden_size: elements of a row of the text model.

    Raises:
        ModelError: a configuration that is not supported.
    """
    fitting = [t for t in towers().get(str(config.get("model_type")), ()) if t.fits(config)]
    if not fitting:
        return None
    (tower,) = fitting
    processor = _processor(path)
    if processor is None:
        return None
    return DescribedTower(
        tower, tower.read(config, hidden_size), config, tower.processor(processor)
    )


def _processor(path: Path) -> Mapping[str, Any] | None:
    """Return the settings of the image processor of a folder, as its files have them.

    Raises:
        ModelError: the file is damaged.
    """
    joined = optional_json(path / "processor_config.json").get("image_processor")
    if joined is not None and not isinstance(joined, Mapping):
        raise ModelError(
            f"{path}/processor_config.json: image_processor is {shown(joined)}, not an object"
        )
    return joined or optional_json(path / PROCESSOR) or None
