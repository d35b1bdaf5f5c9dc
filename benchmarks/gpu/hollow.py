"""Compiles folders of large models without weights; a seed generates these on another machine."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

from wherry.artifact.manifest import INDEX, FileRecord, digest, record
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.choices import Limits, with_dtypes
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe
from wherry.compiler.package import Compilation, package
from wherry.compiler.weight_cache import index_json, lay_out
from wherry.compiler.weight_marker import MARKER, SCHEMA_VERSION
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import find as find_target

UNKNOWN = "0" * 64  # placeholder for the hash of a shard that does not exist yet


def compile_hollow(
    out: Path, config: dict[str, Any], quant: str, target: str, limits: Limits
) -> None:
    """Compile the model of a `config.json` to `out`; its shards are sparse files."""
    scheme = find_scheme(quant)
    weights = out.with_name(out.name + "-weights")
    weights.mkdir(parents=True)
    (weights / "config.json").write_text(json.dumps(config))
    described = describe(read_folder(weights))
    shapes = parameters(described.arch, described.config, described.entries)
    shards = lay_out([scheme.stored(name, shape) for name, shape in shapes.items()])
    for shard in shards:
        with (weights / shard.name).open("wb") as file:
            os.truncate(file.fileno(), shard.nbytes)
    (weights / INDEX).write_text(index_json(shards, sum(map(prod, shapes.values()))))
    files = {name: record(weights / name) for name in (INDEX, "config.json")}
    files |= {shard.name: FileRecord(size=shard.nbytes, sha256=UNKNOWN) for shard in shards}
    marker = {"schema": SCHEMA_VERSION, "files": {n: asdict(r) for n, r in files.items()}}
    (weights / MARKER).write_text(json.dumps(marker | {"digest": digest(marker)}))
    deployment = limits.deployment(described)
    compilation = Compilation(
        described=described.at(deployment.context),
        weights=weights,
        scheme=scheme,
        own={},
        label=scheme.name,
        target=with_dtypes(find_target(target), scheme, "auto", "auto"),
        deployment=deployment,
        name=out.name,
        key="hollow",
        linked="hollow",
    )
    package(out, compilation)
