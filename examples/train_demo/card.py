"""Writes the text of the model card."""
# ruff: noqa: E501  (prose)

from __future__ import annotations

from dataclasses import dataclass

from report import Evaluation, question_table, wish_table

_CARD = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---

# demo: the model that is built into Wherry

A very small chat model, so that `wherry run demo "Tell me a story about a fox."` works on any machine without a network. It is here to show that everything works, not to know things.

## What it is

- Architecture: Llama (`LlamaForCausalLM`), {parameters} parameters: hidden 256, 6 layers, 4 query and 2 key/value heads of 64, MLP 512, tied embeddings.
- Vocabulary: 2048 entries, byte-level BPE, trained on the same text. Context: 1024 tokens.
- Weights: float16.
- Chat format: `<|bos|><|system|>...<|end|><|user|>...<|end|><|assistant|>...<|end|>`. The template writes `<|bos|>` itself, so encode its result without special tokens; plain text for completion is encoded with special tokens, which puts `<|bos|>` in front.

## How it was made

All text was made by the rules in `examples/train_demo` from a seed: templates, word lists and small tables of facts. No other text was used: nothing was downloaded, and no other model took part. About half of the text is stories (31 plots, with chosen or random heroes, friends, places and things; a name or a kind, such as a queen, always has the same gender) with questions about them; the rest is questions and answers, sums, counting, lists, poems, small talk, facts about Wherry, and polite refusals.

- Training: {steps} steps, {tokens} million tokens, every text seen once; {minutes} minutes on {where}, bfloat16 matrix products with float32 weights.{before}
- Optimizer: Muon for the matrices, AdamW for the embedding and the norms; {schedule}.
- Loss: only what the assistant says, and plain stories; the choice between a pronoun and those of the other gender, and between yes and no, counts four times more.
- To make one like it: `python examples/train_demo/train.py`.

## How well it works

Loss on unseen text of the same kind: {loss:.3f} a token (perplexity {perplexity:.2f}); with all matrices rounded to 4 bits in groups of 32: {loss4:.3f}. Much of this loss is chance, such as the name of a hero, and cannot go away.

Greedy replies to held-out questions (wordings that training never saw, about facts that it did see; each wording once), exact match of the answer:

{questions}

Stories for held-out wishes, which ask for a hero, a name, a place, a thing or a theme: how many have what was asked for. A theme is kept when the story tells its plot. The most likely story, and one drawn at a temperature of 0.7 with top-p of 0.9:

{stories}

Twenty stories for each request that leaves everything open, drawn: how many tell at least half of a plot and end with a sentence:

{plain_stories}

300 stories for such wishes, drawn: whether hero and friend keep their names, and one pronoun each that fits the name (or the kind, as of a queen):

{characters}

Small talk in held-out wordings: how many replies are one that the rules have for it, word by word:

{small_talk}

Lists ("Name four fruits."), one wish for each kind and each number of items; a garbled item is a word that is in no table:

{lists}

## What it can and cannot do

It tells short stories with the hero and mostly with the name and the place that you ask for, and answers questions about them. It counts, adds and subtracts up to 20, multiplies up to 10, and knows a few dozen capitals, opposites, animals, colours and words of its trade. It remembers a name that you tell it, and chats a little.

It knows nothing else. It is meant to say so ("I am a very small model and do not know that"), but it may also give a wrong answer in a firm voice. Its stories seldom keep to a theme ("about friendship", "who cannot sleep"), now and then give two heroes one name or a princess that of a boy, and repeat a few plots, above all in greedy decoding: use the temperature of 0.7 that `generation_config.json` has. Lists have as many items as you ask for, but often name a thing twice. It understands no language but English. Do not use it for anything that matters.

## Licence

Apache-2.0, as the rest of the project.
"""


@dataclass(frozen=True)
class Run:
    """Facts about a training run that the model card reports."""

    parameters: int
    steps: int
    tokens: int
    minutes: int
    where: str  # name of the processor or GPU
    before: int  # number of steps that an earlier run had trained
    schedule: str  # description of the learning rate schedule


# A description of the runs that trained the model from which the README's commands start.
_EARLIER_RUNS = (
    " It went on from a model of {before} steps: 2800 (8.3 million tokens, 65 minutes on a thread of an AMD EPYC, the full rates for 2000 "
    "steps and linear decay for 800), whose text had fewer questions about facts; 1537 (6.1 million tokens, 34 minutes on a thread of "
    "an Intel Xeon, 0.6 of the full rates for 610 steps and linear decay for 927), in whose text most names had either gender; 1304 (5.0 "
    "million tokens, 22 minutes on the same, half of the full rates for 526 steps, then decay to zero), with fewer questions about kinds "
    "of things and without weight on yes and no."
)


def card(run: Run, losses: list[float], results: list[Evaluation]) -> str:
    """Return the text of the model card, with the results in float16 first, then in 4 bits."""
    return _CARD.format(
        parameters=f"{run.parameters / 1e6:.2f} million",
        steps=run.steps,
        tokens=f"{run.tokens / 1e6:.1f}",
        minutes=run.minutes,
        where=run.where,
        before=_EARLIER_RUNS.format(before=run.before) if run.before else "",
        schedule=run.schedule,
        loss=losses[0],
        perplexity=2.718281828 ** losses[0],
        loss4=losses[1],
        questions=question_table(*results),
        stories=wish_table(*results, "stories"),
        plain_stories=wish_table(*results, "plain_stories"),
        characters=wish_table(*results, "characters"),
        small_talk=wish_table(*results, "small_talk"),
        lists=wish_table(*results, "lists"),
    )
