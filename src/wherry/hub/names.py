"""The names that MODEL may have: which are possible, and what a wrong one probably means.

It imports little, so that a wrong name is told before a compiler or a client of the hub is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import wherry
from wherry.artifact import MANIFEST
from wherry.base.json_file import read_object
from wherry.errors import ModelError, UsageError, shown

from .file_names import MISTRAL_INDEX, MISTRAL_PARAMS, MISTRAL_WEIGHTS
from .gguf_files import SUFFIX, is_projector

DEMO = "demo"
_HUB = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
# Other programs' spellings, and copied addresses; /tree/ precedes a revision.
_HUB_GGUF = re.compile(
    r"hf://([\w.-]+/[\w.-]+)(?:@([\w.-]+))?(?:/([\w.+-]+(?:/[\w.+-]+)?\.gguf)|:([\w.-]+))",
    re.IGNORECASE,
)
_OTHER_HUB = re.compile(
    r"(?:HF://|Hf://|hf:|(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)?"
    r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:/tree/([\w.-]+)|(:\w+))?/?"
)
_ACCEPTED = """MODEL is one of
  demo                     the small model that comes with Wherry
  DIR                      a folder with config.json, *.safetensors and tokenizer.json
  FILE.gguf                a model in GGUF; of several files any one
  hf://ORG/NAME[@REVISION] a model of the Hugging Face hub; of a repository of GGUF
                           hf://ORG/NAME/FILE.gguf or hf://ORG/NAME:Q4_K_M"""


def check(model: str) -> None:
    """Raise the error of a name that no download can make a model; a compiled folder is one.

    Raises:
        UsageError: `model` is none of these.
        ModelError: it is a folder without a model.
    """
    if model == DEMO or parse_gguf(model) or parse_hub(model):
        return
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            with_config(path, model)
    elif not path.exists():
        what = "file" if path.suffix.lower() == SUFFIX else "folder"
        raise UsageError(f"There is no {what} {model!r}.{_on_name(model)}\n{_ACCEPTED}")
    elif path.suffix.lower() != SUFFIX:
        raise UsageError(f"{model} is a file, and no model.{_on_file(path)}\n{_ACCEPTED}")


def possible(model: str) -> bool:
    """Whether `check` accepts a name."""
    try:
        check(model)
    except (UsageError, ModelError):
        return False
    return True


def folder_of(model: str) -> Path:
    """Return the path of a MODEL that is on this machine."""
    return Path(wherry.__path__[0]) / DEMO if model == DEMO else Path(model).expanduser()


def with_config(folder: Path, model: str) -> Path:
    """Return a folder in Hugging Face's layout.

    Raises:
        ModelError: it holds no model, or one in another layout.
    """
    if what := _no_model(folder):
        raise ModelError(f"{model}: {folder} {what}")
    if not (folder / "config.json").is_file() and not is_mistral(folder):
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() == SUFFIX)
        files = [p for p in files if not is_projector(p.name)]
        why = f" Type the GGUF file itself: {files[0]}" if files else ""
        if (folder / "mlc-chat-config.json").is_file():
            why = " mlc-llm has quantized its weights: give the original model, and --quant."
        raise ModelError(
            f"{model}: {folder} has no config.json, so it is not a model.{why}\n{_ACCEPTED}"
        )
    return folder


def is_mistral(folder: Path) -> bool:
    """Return whether a folder has a model in Mistral's own layout, and in no other."""
    weights = (folder / MISTRAL_WEIGHTS, folder / MISTRAL_INDEX)
    own = (folder / MISTRAL_PARAMS).is_file() and any(path.is_file() for path in weights)
    return own and not (folder / "config.json").is_file()


def _no_model(folder: Path) -> str:
    """Return what a folder holds in place of a model, and what to do; "": nothing that is known."""
    weights = [p.name for p in folder.iterdir() if p.suffix in (".safetensors", ".bin", SUFFIX)]
    adapter = folder / "adapter_config.json"
    if adapter.is_file() and all(name.startswith("adapter_") for name in weights):
        try:
            base = read_object(adapter).get("base_model_name_or_path")
        except (OSError, ValueError):
            base = None
        return (
            f"is an adapter (PEFT) of {shown(base) if base else 'another model'}; complete models "
            "are read. Merge the two: peft's AutoPeftModelForCausalLM, then merge_and_unload() and "
            "save_pretrained(DIR)."
        )
    has_config = (folder / "config.json").is_file()
    pickles = [*folder.glob("consolidated*.pth"), *folder.glob("consolidated*.pt")]
    if not has_config and pickles and not is_mistral(folder):
        return (
            f"has a model in Mistral's or Meta's own layout with pickled weights "
            f"({pickles[0].name}), which are not read. Take the same model with *.safetensors."
        )
    onnx = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    if onnx and not weights:
        return (
            f"has a model in ONNX ({onnx[0].relative_to(folder)}), which is not read. Give the "
            "original model, with *.safetensors."
        )
    return ""


def _on_file(file: Path) -> str:
    """The error for a file that is no model folder."""
    if "imatrix" in file.name.lower():
        return " It is an importance matrix, by which llama.cpp quantizes models, and no model."
    if (file.parent / "config.json").is_file():
        return f" Type its folder: {file.parent}"
    return ""


def _on_name(model: str) -> str:
    """Return the error message for a name that does not exist, with a suggestion."""
    from difflib import get_close_matches

    if close := get_close_matches(model, [DEMO, *_beside(model)], n=1, cutoff=0.7):
        return f"\nDid you mean {close[0]}?"
    if match := _OTHER_HUB.fullmatch(model):
        at = f"@{match[2]}" if match[2] and match[2] != "main" else ""
        return f"\nDid you mean hf://{match[1]}{at}{match[3] or ''}?"
    if re.fullmatch(r"[\w.-]+:[\w.-]+", model):
        return (
            "\nNames of Ollama's library are not known here: give a model of the Hugging Face hub."
        )
    return ""


def _beside(model: str) -> Iterator[str]:
    """Yield what lies in the folder of a name that does not exist, and may be a model."""
    start, parent = model[: model.rfind("/") + 1], Path(model).expanduser().parent
    if not parent.is_dir():
        return
    for path in parent.iterdir():
        if path.suffix.lower() == SUFFIX or (path / "config.json").is_file():
            yield start + path.name
        elif (path / MANIFEST).is_file():
            yield start + path.name


def parse_gguf(model: str) -> tuple[str, str | None, str] | None:
    """Parse ORG/NAME, the revision, and a GGUF file or quantization; None if `model` is none."""
    match = _HUB_GGUF.fullmatch(model)
    return (match[1], match[2], match[3] or match[4]) if match else None


def is_gguf(model: str) -> bool:
    """Return whether `model` is in GGUF, on this machine or on the hub."""
    path = Path(model).expanduser()
    return parse_gguf(model) is not None or (path.suffix.lower() == SUFFIX and not path.is_dir())


def parse_hub(model: str) -> tuple[str, str | None] | None:
    """Parse ORG/NAME and the revision of a model on the hub; None if `model` is not on the hub.

    Raises:
        UsageError: `model` begins with hf:// but is malformed.
    """
    if not model.startswith("hf://"):
        return None
    match = _HUB.fullmatch(model)
    if not match:
        raise UsageError(
            f"{model!r} is not of the form hf://ORG/NAME[@REVISION], or of GGUF "
            "hf://ORG/NAME[@REVISION]/FILE.gguf or hf://ORG/NAME[@REVISION]:Q4_K_M."
        )
    return match[1], match[2]
