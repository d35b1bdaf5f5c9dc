"""A catalog over scripted models, whose loads a test counts, holds up and lets fail."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from pathlib import Path

from wherry.base.locks import Use
from wherry.runtime.load.memory import Room
from wherry.runtime.load.model import Origin
from wherry.runtime.server.catalog.catalog import Catalog
from wherry.runtime.server.catalog.listing import Spec
from wherry.runtime.server.catalog.prepared import Prepared

from ...support import artifacts
from ..conftest import make_model

MB = 10**6


def prepared(folder: Path, manifest, name, *, megabytes=100, per_token=0, **fields) -> Prepared:
    """A model of `mb` MB; with `per_token` bytes of a token's cache besides."""
    memory = {"weights": megabytes * MB, "workspace": 0, "kv_per_token": per_token}
    return Prepared(
        spec=Spec(name=name, model=str(folder), options=fields.pop("options", {}), **fields),
        folder=folder,
        manifest=replace(manifest, name=name, memory=memory),
        device="cpu",
    )


class Loads:
    """Loads scripted models; `text[name]` is what one says, `fails[name]` why it does not load."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.tokens: list[int | None] = []
        self.open: dict[str, list] = {}
        self.texts: dict[str, str | None] = {}
        self.fails: dict[str, Exception] = {}
        self.gates: dict[str, threading.Event] = {}
        self.cores: dict[str, dict] = {}

    def __call__(self, model_files, kv_tokens):
        name = model_files.spec.name
        self.begun.append(name)
        self.tokens.append(kv_tokens)
        if gate := self.gates.get(name):
            assert gate.wait(20)
        if name in self.fails:
            raise self.fails[name]
        text = self.texts.get(name, f"I am {name}")
        model = make_model(text, **self.cores.get(name, {}))
        model.origin = Origin(model_files.folder, model_files.manifest, Use(model_files.folder))
        self.open.setdefault(name, []).append(model)
        return model

    def loaded(self) -> set[str]:
        """Names of the models whose cores are open."""
        return {
            name
            for name, models in self.open.items()
            if any(not m.dispatcher._core.closed for m in models)
        }


@contextlib.contextmanager
def catalog(tmp_path: Path, loads: Loads, models, *, free=250 * MB, **options):
    """A catalog of {name: arguments of `prepared`} on a machine with so many bytes."""
    manifest = artifacts.write(tmp_path)
    models_prepared = [
        prepared(tmp_path, manifest, name, **fields) for name, fields in models.items()
    ]
    room = options.pop("room", lambda device: Room(free))
    with Catalog(models_prepared, load=loads, room=room, **options) as opened:
        yield opened
