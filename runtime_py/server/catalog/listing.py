"""Reads the models of a server from a YAML file, or from a folder of models.

memory_limit: 12GB          # all models in memory together; default: free memory
keep_alive: 5m              # how long a model stays after its last answer; -1: for ever
defaults: {threads: 4}      # options of every model
models:
  - model: hf://Qwen/Qwen3-0.6B   # as the command line takes it; paths begin at this file
    name: qwen
    aliases: [gpt-4o-mini]
    keep_alive: 1h
    preload: true
    context: 8192           # and all other names of wherry.runtime.load.options.LoadOptions
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from wherry.artifact.manifest import MANIFEST, read_manifest
from wherry.errors import UsageError, listing

from ...load.options import LoadOptions
from .quantities import bytes_of, seconds_of

_log = logging.getLogger(__name__)
KEEP_ALIVE_SECONDS = 300.0  # the default of Ollama
_SHOWN = 60  # characters of a wrong value that an error message shows
_MARKS = (MANIFEST, "config.json")  # a folder with one of these files is a model
_PATHS = ("draft", "draft_head", "mmproj", "prefix_cache_dir")  # options that may be paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One model of a server, as its listing describes it.

    Attributes:
        name: the model's name for clients, which may also use one of `aliases`.
        model: "demo", hf://ORG/NAME, or a folder.
        keep_alive: seconds that the model stays in memory after its last response; infinity: for
            ever.
        preload: whether the model is loaded before the server listens.
        options: options of the model's load and compilation.
    """

    name: str
    model: str
    options: LoadOptions
    aliases: tuple[str, ...] = ()
    keep_alive: float = KEEP_ALIVE_SECONDS
    preload: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All models of a server, as its listing describes them.

    Attributes:
        memory_limit: maximum bytes of all loaded models together; None: free memory.
        keep_alive: seconds that models added later stay loaded; `defaults` are their options.
    """

    specs: tuple[Spec, ...]
    defaults: LoadOptions
    memory_limit: int | None = None
    keep_alive: float = KEEP_ALIVE_SECONDS


Seconds = Annotated[float, BeforeValidator(seconds_of)]
Size = Annotated[int, BeforeValidator(bytes_of)]
_Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^\S(.*\S)?$")]
_STRICT = ConfigDict(strict=True, extra="forbid", protected_namespaces=())
_OPTIONS: dict[str, Any] = {
    name: (kind, None)
    for name, kind in get_type_hints(LoadOptions).items()
    if name != "progress"  # `progress` is a function, which no file can contain
}
if TYPE_CHECKING:
    _Options = BaseModel
else:  # all other fields are names of LoadOptions
    _Options = create_model("Options", __config__=_STRICT, **_OPTIONS)


class _Entry(_Options):
    model: _Name
    name: _Name | None = None
    aliases: list[_Name] = Field(default_factory=list)
    keep_alive: Seconds | None = None
    preload: bool = False


class _File(BaseModel):
    model_config = _STRICT
    models: Annotated[list[_Entry], Field(min_length=1)]
    memory_limit: Size | None = None
    keep_alive: Seconds | None = None
    defaults: _Options | None = None


def read(
    place: Path, defaults: LoadOptions | None = None, keep_alive: float | None = None
) -> Listing:
    """Return the models that a YAML file or a folder of models lists.

    Args:
        place: the file, or a folder of model folders.
        defaults: options for models that set none themselves.
        keep_alive: seconds that a model stays loaded if it sets no time itself.

    Raises:
        UsageError: lists everything that is wrong.
    """
    stays = KEEP_ALIVE_SECONDS if keep_alive is None else keep_alive
    if place.is_dir():
        return _of_folder(place, defaults or {}, stays)
    try:
        content = yaml.load(place.read_text(encoding="utf-8"), _Loader)  # _Loader is a SafeLoader
    except OSError as e:
        raise UsageError(f"{place} cannot be read: {e.strerror}") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise UsageError(f"{place} is not YAML: {e}") from e
    try:
        file = _File.model_validate(content)
    except ValidationError as e:
        problems = listing(_spelled(e))
        raise UsageError(f"{place} does not list models:\n{problems}") from e
    return _listed(file, place, defaults or {}, stays)


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses a repeated key, as YAML demands; PyYAML takes the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(k.value for k, _ in node.value if isinstance(k, yaml.ScalarNode))
        if twice := [key for key, count in keys.items() if count > 1 and key != "<<"]:
            raise yaml.MarkedYAMLError(
                problem=f"the keys {', '.join(twice)} come twice", problem_mark=node.start_mark
            )
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _listed(file: _File, place: Path, defaults: LoadOptions, stays: float) -> Listing:
    shared = {**defaults, **_given(file.defaults)}
    keep_alive = stays if file.keep_alive is None else file.keep_alive
    specs = []
    for entry in file.models:
        options = shared | _given(entry, _Options.model_fields)
        for name in _PATHS:
            if options.get(name) not in (None, "", "none"):  # "none" is no path
                options[name] = _placed(str(options[name]), place.parent)
        model = _placed(entry.model, place.parent)
        specs.append(
            Spec(
                name=entry.name or name_of(model),
                model=model,
                aliases=tuple(entry.aliases),
                keep_alive=keep_alive if entry.keep_alive is None else entry.keep_alive,
                preload=entry.preload,
                options=cast(LoadOptions, options),
            )
        )
    if problems := list(_clashes(specs)):
        raise UsageError(f"{place} gives a name twice:\n{listing(problems)}")
    return Listing(
        specs=tuple(specs),
        defaults=cast(LoadOptions, shared),
        memory_limit=file.memory_limit,
        keep_alive=keep_alive,
    )


def _of_folder(place: Path, defaults: LoadOptions, stays: float) -> Listing:
    if any((place / mark).is_file() for mark in _MARKS):
        raise UsageError(
            f"{place} is one model, not a folder of models. Type: wherry serve {place}"
        )
    folders = [p for p in sorted(place.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    models = [p for p in folders if any((p / mark).is_file() for mark in _MARKS)]
    for other in sorted(set(folders) - set(models)):
        _log.warning("%s is not a model (it has no %s); it is left out", other, " or ".join(_MARKS))
    specs = [Spec(name=p.name, model=str(p), options=defaults, keep_alive=stays) for p in models]
    return Listing(specs=tuple(specs), defaults=defaults, keep_alive=stays)


def name_of(model: str) -> str:
    """Return a name for a model whose entry has none, from its path or address."""
    if model.startswith("hf://"):
        return model.removeprefix("hf://").partition("@")[0]
    folder = Path(model).expanduser()
    if (folder / MANIFEST).is_file():
        return read_manifest(folder).name
    return model if model == "demo" else folder.resolve().name


def _placed(model: str, base: Path) -> str:
    """Return the model's path resolved relative to the folder of the file that names it."""
    if model == "demo" or "://" in model:
        return model
    return str(base / Path(model).expanduser())


def _given(options: BaseModel | None, names: Iterable[str] | None = None) -> dict[str, Any]:
    values = options.model_dump(exclude_none=True) if options else {}
    return values if names is None else {n: values[n] for n in names if n in values}


def _clashes(specs: Sequence[Spec]) -> Iterator[str]:
    count = Counter(name for spec in specs for name in (spec.name, *spec.aliases))
    for name in (name for name, times in count.items() if times > 1):
        owners = ", ".join(s.model for s in specs if name in (s.name, *s.aliases))
        yield f"{name!r}: {owners}"


def _spelled(error: ValidationError) -> list[str]:
    """Return a line for each unknown key, with the accepted name that it may mean."""
    lines: dict[str, str] = {}
    for e in error.errors(include_url=False):
        where, fields = "", _File.model_fields
        for part in e["loc"]:
            if isinstance(part, int):
                where, fields = f"{where}[{part}]", _Entry.model_fields
            elif part in fields or (part == e["loc"][-1] and e["type"] == "extra_forbidden"):
                where = f"{where}.{part}" if where else part
                fields = _Options.model_fields if part == "defaults" else fields
        if e["type"] == "extra_forbidden":
            said = f"there is no such key; accepted are {', '.join(sorted(fields))}"
        else:
            said = f"{e['msg'].removeprefix('Value error, ')}; found {_short(e['input'])}"
        if e["type"] == "missing":
            said = "it is missing"
        lines.setdefault(where, f"{where or 'the file'}: {said}")
    return list(lines.values())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
