"""Writes the text on which `wherry quality demo` compares: conversations that training never saw.

    python evaluation_text.py ../../src/wherry/demo/wherry-evaluation.json

The rules are those of the training text, with a seed of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from corpus import BOS, LATE, document

SEED = 2_147_483_647  # training counts its seeds from 0
COUNT = 40


def main() -> None:
    """Write a JSON list of conversations, without the token before each text (BOS)."""
    rng = Random(SEED)
    texts = [document(rng, LATE).removeprefix(BOS) for _ in range(COUNT)]
    Path(sys.argv[1]).write_text(json.dumps(texts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
