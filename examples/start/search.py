"""Search by meaning: the document whose vector is nearest to the question's."""

import sys

import numpy as np

from wherry import MLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "hf://sentence-transformers/all-MiniLM-L6-v2"
DOCUMENTS = [
    "A fox lives in a den.",
    "A boat lies at the pier.",
    "Bread is baked from flour, water and yeast.",
]


def embed(engine: MLCEngine, texts: list[str]) -> np.ndarray:
    """Unit vectors [text, d]."""
    vectors = np.array([item.embedding for item in engine.embeddings.create(input=texts).data])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


with MLCEngine(MODEL) as engine:
    vectors = embed(engine, DOCUMENTS)
    for question in ("Where does the animal sleep?", "How do I make a loaf?"):
        scores = vectors @ embed(engine, [question])[0]
        best = int(scores.argmax())
        print(f"{question} -> {DOCUMENTS[best]} ({scores[best]:.2f})")
