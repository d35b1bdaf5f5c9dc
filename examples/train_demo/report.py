"""Evaluates a model on questions, stories, lists and small talk, in float16 and rounded to 4 bits.

`python report.py FOLDER` prints the tables for an exported model.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from evaluate import Results, exact, rounded_to_4_bits
from evaluate_characters import characters
from evaluate_lists import lists
from evaluate_small_talk import small_talk
from evaluate_stories import plain_stories, stories
from generation import Sampling
from model import Llama, ModelConfig, from_hf
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

_DRAWN = Sampling(seed=7)


@dataclass(frozen=True)
class Evaluation:
    """Results on held-out questions, and on the rest with most likely and sampled replies."""

    questions: Results
    stories: Results
    drawn_stories: Results
    drawn_plain_stories: Results
    lists: Results
    drawn_lists: Results
    drawn_characters: Results
    small_talk: Results
    drawn_small_talk: Results


def evaluated(model: Llama, tokenizer: Tokenizer) -> Evaluation:
    """Evaluate a model on everything; it stays on its device."""
    return Evaluation(
        exact(model, tokenizer),
        stories(model, tokenizer),
        stories(model, tokenizer, _DRAWN),
        plain_stories(model, tokenizer, _DRAWN),
        lists(model, tokenizer),
        lists(model, tokenizer, _DRAWN),
        characters(model, tokenizer, _DRAWN),
        small_talk(model, tokenizer),
        small_talk(model, tokenizer, _DRAWN),
    )


def both(state: dict[str, Tensor], device: torch.device) -> list[Llama]:
    """Return the model twice: with float16 weights, and with matrices rounded to 4 bits."""
    models = []
    for weights in ({k: v.half().float() for k, v in state.items()}, rounded_to_4_bits(state)):
        model = Llama(ModelConfig())
        model.load_state_dict(weights)
        models.append(model.to(device))
    return models


def question_table(full: Evaluation, rounded: Evaluation) -> str:
    """Return the table of the questions; its row "all" excludes questions with typing errors."""
    pair = (full.questions, rounded.questions)
    *topics, mistyped = full.questions
    rows = [(name, *(_share(results[name]) for results in pair)) for name in topics]
    rows.append(("**all**", *(_total(results, topics) for results in pair)))
    rows.append((mistyped, *(_share(results[mistyped]) for results in pair)))
    return _table(("topic", "float16", "4 bits"), rows)


def wish_table(full: Evaluation, rounded: Evaluation, what: str) -> str:
    """Return the table of stories, lists and so on: the most likely replies, then sampled ones."""
    ways = {what: "", f"drawn_{what}": ", drawn"}
    present = {name: drawn for name, drawn in ways.items() if hasattr(full, name)}
    columns = [getattr(e, name) for name in present for e in (full, rounded)]
    rows = [
        (name, *(_share(results[name]) for results in columns))
        for name in columns[0]
        if columns[0][name][1]
    ]
    head = [f"{bits}{drawn}" for drawn in present.values() for bits in ("float16", "4 bits")]
    return _table(("", *head), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _share(row: tuple[int, int, list[tuple[str, str, str]]]) -> str:
    right, total, _ = row
    return f"{right} of {total} ({100 * right / total:.0f} %)"


def _total(results: Results, topics: list[str]) -> str:
    right = sum(results[name][0] for name in topics)
    total = sum(results[name][1] for name in topics)
    return f"{right} of {total} ({100 * right / total:.1f} %)"


def main() -> None:
    """Evaluate the model of a folder that the command line names, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--failures", type=Path, help="write all answers and failures as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    state = from_hf(load_file(arguments.folder / "model.safetensors"))
    tokenizer = Tokenizer.from_file(str(arguments.folder / "tokenizer.json"))
    results = [evaluated(model, tokenizer) for model in both(state, torch.device("cpu"))]
    if arguments.failures:
        arguments.failures.write_text(json.dumps([asdict(r) for r in results], indent=1))
    kinds = ("stories", "plain_stories", "characters", "lists", "small_talk")
    tables = [question_table(*results), *(wish_table(*results, kind) for kind in kinds)]
    sys.stdout.write("\n\n".join(tables) + "\n")


if __name__ == "__main__":
    main()
