"""A site: the page, compiled folders, and `models.json`, which lists them for the page.

    index.html, page.js, worker.js, ...   the page: web/demo, bundled
    models.json                           {"schema": 1, "models": [{"name", "folders", "bytes"}]}
    models/NAME-TARGET/                   compiled folders

`folders` are variants of one model: the browser takes the first that its device can run.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.artifact.manifest import MANIFEST, Manifest, read_manifest
from wherry.base import settings
from wherry.base.temporary import require_own
from wherry.errors import ArtifactError, ToolchainError, UsageError

INDEX = "models.json"
MODELS = "models"  # folder of compiled folders
TARGETS = ("webgpu", "wasm")  # targets of browsers, the more demanding first
PAGE_FIX = "apt-get install nodejs npm, and in a checkout: make browser"
_SCHEMA = 1


def index_of(folders: Mapping[str, Path]) -> dict[str, Any]:
    """Return the content of `models.json`.

    Args:
        folders: address on the site, with a final "/" -> compiled folder.

    Raises:
        ArtifactError: a folder is no compiled folder.
        UsageError: a folder was compiled for another target.
    """
    models = [_entry(name, variants) for name, variants in _named(folders).items()]
    return {"schema": _SCHEMA, "models": models}


def notes_on(folders: Mapping[str, Path]) -> list[str]:
    """Say which browsers run none of a model's variants, and what to add for them.

    Args:
        folders: as in `index_of`; raises as that.
    """
    notes = []
    for name, variants in _named(folders).items():
        targets = [manifest.target for _, manifest in variants]
        if any(target["name"] == "wasm" for target in targets):
            continue
        note = f"{name}: browsers without WebGPU do not run it; for them add --target wasm."
        if needed := set.intersection(*(set(t.get("device_features", ())) for t in targets)):
            scheme = variants[0][1].quantization
            note += (
                f" Nor do GPUs without {', '.join(sorted(needed))}; for them add "
                f"-q {scheme} -q q4f32_1."
            )
        notes.append(note)
    return notes


def _named(folders: Mapping[str, Path]) -> dict[str, list[tuple[str, Manifest]]]:
    """Return the compiled folders' addresses and manifests, by the model's name."""
    named: defaultdict[str, list[tuple[str, Manifest]]] = defaultdict(list)
    for address, folder in folders.items():
        manifest = read_manifest(folder)
        _check_target(folder, manifest)
        named[manifest.name].append((address, manifest))
    return named


def _entry(name: str, variants: list[tuple[str, Manifest]]) -> dict[str, Any]:
    ascending = sorted(variants, key=lambda v: _demands(v[1]))
    first = ascending[0][1]
    return {
        "name": name,
        "folders": [address for address, _ in ascending],
        "bytes": sum(record.size for record in first.files.values()),
    }


def _demands(manifest: Manifest) -> tuple[int, int]:
    """Return the sort key of a variant: more demanding variants come first."""
    kind = TARGETS.index(str(manifest.target["name"]))
    return kind, -len(manifest.target.get("device_features", ()))


def _check_target(folder: Path, manifest: Manifest) -> None:
    name = str(manifest.target["name"])
    if name not in TARGETS:
        raise UsageError(
            f"{folder} was compiled for {name}, which no browser runs. Type: "
            f"wherry compile MODEL --target {TARGETS[0]} -o DIR"
        )


def folders_in(place: Path) -> dict[str, Path]:
    """Find the compiled folders in `place`, with their addresses on a site.

    Raises:
        ArtifactError: there are none.
    """
    if (place / MANIFEST).is_file():
        return {f"{MODELS}/{place.resolve().name}/": place}
    folders = [path for path in sorted(place.iterdir()) if (path / MANIFEST).is_file()]
    if not folders:
        raise ArtifactError(
            f"{place} is neither a site (index.html) nor a compiled model ({MANIFEST}), and has "
            f"none in it. Type: wherry compile MODEL --target {TARGETS[0]} -o {place}"
        )
    return {f"{MODELS}/{path.name}/": path for path in folders}


def write_index(site: Path, folders: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Write `models.json` and return its models; raises as `index_of`."""
    index = index_of(folders)
    (site / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    models: list[dict[str, Any]] = index["models"]
    return models


def copy_page(site: Path) -> None:
    """Copy the page into a site; raises as `page_folder`."""
    for path in page_folder().iterdir():
        shutil.copyfile(path, site / path.name)


def page_folder() -> Path:
    """Find the bundled page: WHERRY_WEB_PAGE's, the installed one, or a checkout's build.

    Raises:
        ToolchainError: the page was not built, because npm was missing when Wherry was installed.
    """
    here = Path(__file__).parent
    build = here.parents[2] / "build"
    chosen = settings.web_page()
    places = [chosen] if chosen else [here / "page", build / "page", build / "dev" / "page"]
    for place in places:
        if (place / "index.html").is_file():
            return place
    raise ToolchainError(
        f"The page that runs models in browsers was not found ({places[0]}). Type: {PAGE_FIX}"
    )


def check_new(out: Path) -> None:
    """Raise if `out` has other files, which a site would be mixed with.

    Raises:
        UsageError: the folder has files and is no site.
    """
    require_own(out, INDEX, "site")
