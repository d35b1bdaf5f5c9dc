"""Trains the demo model and exports it.

`python train.py` does everything; a run that was stopped resumes from its last checkpoint. `--start
FOLDER` trains an exported model further, on text that it has not seen. A GPU takes minutes instead
of hours, for example with `--device cuda --wider 16 --processes 14 --minutes 8`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from batches import Packer, batches
from card import Run, card
from corpus import EARLY, LATE
from export import check, export
from model import Llama, ModelConfig, from_hf
from muon import Muon
from report import both, evaluated
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from vocabulary import load_or_train

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Recipe:
    """The settings that determine the result.

    The learning rate is constant, and falls linearly at the end.
    """

    steps: int = 2800
    decay_steps: int = 800
    warmup_steps: int = 50
    early_steps: int = 1500
    first_step: int = 0  # number of the first step in a run that trains an exported model further
    wider: int = 1  # factor by which batches have more rows
    # factor of the learning rates before they fall; a short continuation needs less
    peak: float = 1.0
    matrix_rate: float = 0.02
    other_rate: float = 0.004
    weight_decay: float = 0.1
    seed: int = 1

    def rate(self, step: int) -> float:
        """Return the factor of the learning rates at this step."""
        begun = (step - self.first_step + 1) / self.warmup_steps
        return self.peak * min(1.0, begun, (self.steps - step) / self.decay_steps)

    def shape(self, step: int) -> tuple[int, int]:
        """Return the batch's rows and length: small batches first, long rows at the end."""
        if step < self.early_steps:
            return 8 * self.wider, 256
        last = self.steps - step <= self.decay_steps // 6
        return (4 * self.wider, 1000) if last else (10 * self.wider, 400)

    def schedule(self) -> str:
        """Return a description of the learning rate schedule."""
        level = self.steps - self.first_step - self.decay_steps
        return f"{self.peak:g} of the full rates for {level} steps, then linear decay to zero"

    def fitted(self, step: int, left: int) -> Recipe:
        """Return a recipe that ends `left` steps after `step`, and decays in their last third."""
        steps = step + left
        return replace(self, steps=steps, decay_steps=max((steps - self.first_step) // 3, 1))


# Words of one place in a sentence, of which only one is right: the hero's pronoun, yes or no.
_CHOICES = (
    (" he", " she"), (" He", " She"), ("He", "She"), (" him", " her"), (" his", " her"),
    ("Yes", "No"),
)  # fmt: skip


def opposites(tokenizer: Tokenizer) -> Tensor:
    """Return for each token those that would say the opposite, [v, 2] int64; -1 for none."""
    table = torch.full((tokenizer.get_vocab_size(), 2), -1)
    for pair in _CHOICES:
        ids = [tokenizer.encode(word, add_special_tokens=False).ids for word in pair]
        if all(len(tokens) == 1 for tokens in ids):
            (one,), (other,) = ids
            table[one, 0] = other
            table[other, 0 if table[other, 0] < 0 else 1] = one
    return table


def masked_loss(
    model: Llama, inputs: Tensor, targets: Tensor, others: Tensor | None = None
) -> Tensor:
    """Return the mean cross entropy over targets that are not ignored; only these get logits.

    With `others`, the table of `opposites`, that between a word and those that say the opposite is
    added four times: in the mean it is lost among so many words.
    """
    with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
        hidden = model.hidden(inputs)
        counted = targets.flatten() != -100
        logits = F.linear(hidden.flatten(0, 1)[counted], model.embed.weight)
    logits, right = logits.float(), targets.flatten()[counted]
    loss = F.cross_entropy(logits, right)
    if others is None:
        return loss
    wrong = others[right]
    said = wrong[:, 0] >= 0
    logits, right, wrong = logits[said], right[said, None], wrong[said]
    against = logits.gather(1, wrong.clamp_min(0)).masked_fill(wrong < 0, -math.inf).logsumexp(1)
    mixed = F.softplus(against - logits.gather(1, right).squeeze(1))
    return loss + 4 * mixed.sum() / counted.sum()


def optimizers(model: Llama, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Return the optimizers: Muon for the layers' matrices, AdamW for embedding and norms."""
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim < 2 or p is model.embed.weight]
    return [
        Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.01),
    ]


@torch.no_grad()
def validation(model: Llama, packer: Packer, count: int = 8) -> float:
    """Return the loss on text from a seed that training never uses."""
    device = model.embed.weight.device
    drawn = (packer.batch(step, 8, 512) for step in range(count))
    losses = [masked_loss(model, *(x.to(device) for x in batch)).item() for batch in drawn]
    return sum(losses) / len(losses)


def where(device: torch.device) -> str:
    """Return the name of the GPU, or of the processor with its number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    file = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", file.read_text() if file.exists() else "", re.M)
    threads = torch.get_num_threads()
    return f"{threads} thread{'s' * (threads > 1)} of {names[0] if names else platform.machine()}"


class Trainer:
    """The state of a run: model, optimizers, step, and the log.

    Args:
        work: folder for the checkpoint and the log.
        start: folder of an exported model that is trained further.
        device: device of PyTorch.
        processes: number of processes that generate text in advance.
    """

    def __init__(
        self,
        recipe: Recipe,
        work: Path,
        start: Path | None = None,
        device: str = "cpu",
        processes: int = 0,
    ) -> None:
        torch.manual_seed(recipe.seed)
        work.mkdir(parents=True, exist_ok=True)
        if start and not (work / "tokenizer.json").exists():
            shutil.copyfile(start / "tokenizer.json", work / "tokenizer.json")
        self.recipe, self.work = recipe, work
        self.device, self.processes = torch.device(device), processes
        self.config = ModelConfig()
        self.tokenizer = load_or_train(work / "tokenizer.json", self.config.vocab_size, recipe.seed)
        self.others = opposites(self.tokenizer).to(self.device)
        self.packer = Packer(self.tokenizer, recipe.seed)
        self.validation_packer = Packer(self.tokenizer, recipe.seed + 999)
        self.model = Llama(self.config).to(self.device)
        self.optimizers = optimizers(self.model, recipe)
        self.step, self.tokens, self.seconds = recipe.first_step, 0, 0.0
        self.checkpoint = work / "checkpoint.pt"
        if self.checkpoint.exists():
            self._load()
        elif start:
            self.model.load_state_dict(from_hf(load_file(start / "model.safetensors")))

    def _load(self) -> None:
        saved = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        self.model.load_state_dict(saved["model"])
        for optimizer, state in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self.step, self.tokens, self.seconds = saved["step"], saved["tokens"], saved["seconds"]

    def save(self) -> None:
        """Write the checkpoint, which replaces the last one only when it is complete."""
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
        }
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)

    def one_step(self, upcoming: Iterator[tuple[Tensor, Tensor]]) -> float:
        """Train on the next batch and return its loss."""
        started = time.monotonic()
        rate = self.recipe.rate(self.step)
        base = (self.recipe.matrix_rate, self.recipe.other_rate)
        for optimizer, value in zip(self.optimizers, base, strict=True):
            optimizer.param_groups[0]["lr"] = value * rate
        inputs, targets = (x.to(self.device, non_blocking=True) for x in next(upcoming))
        loss = masked_loss(self.model, inputs, targets, self.others)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += inputs.numel()
        self.seconds += time.monotonic() - started
        return loss.item()

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return the batch of a step."""
        mix = EARLY if step < self.recipe.early_steps else LATE
        return self.packer.batch(step, *self.recipe.shape(step), mix=mix)

    def upcoming(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of all remaining steps."""
        return batches(self.batch, range(self.step, self.recipe.steps), self.processes)

    def fit(self, minutes: float, trial: int = 100) -> None:
        """After some steps, set the number of steps so that training takes `minutes` in all.

        Before that, the recipe's number of steps must not be reached.
        """
        upcoming, before = self.upcoming(), self.seconds
        for _ in range(trial):
            self.one_step(upcoming)
        taken = self.seconds - before
        left = max(int((minutes * 60 - taken) / taken * trial), 0)
        self.recipe = self.recipe.fitted(self.step, left)

    def run(self) -> None:
        """Train to the last step; log every 20 steps, save and validate every 100."""
        average, upcoming = math.nan, self.upcoming()
        while self.step < self.recipe.steps:
            loss = self.one_step(upcoming)
            average = loss if math.isnan(average) else 0.95 * average + 0.05 * loss
            last = self.step == self.recipe.steps
            if self.step % 20 == 0 or last:
                self.log(loss=average, rate=self.recipe.rate(self.step - 1))
            if self.step % 100 == 0 or last:
                self.save()
                self.log(validation_loss=validation(self.model, self.validation_packer))

    def log(self, **values: float) -> None:
        """Append a row to log.jsonl."""
        row = {"step": self.step, "tokens": self.tokens, "seconds": round(self.seconds), **values}
        with (self.work / "log.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def write_report(self, path: Path) -> None:
        """Evaluate the model in float16 and rounded to 4 bits, and write the model card."""
        models = both(self.model.state_dict(), self.device)
        results = [evaluated(model, self.tokenizer) for model in models]
        losses = [validation(model, self.validation_packer) for model in models]
        rows = [losses, [asdict(result) for result in results]]
        (self.work / "evaluation.json").write_text(json.dumps(rows, indent=1))
        parameters = sum(p.numel() for p in self.model.parameters())
        run = Run(
            parameters=parameters,
            steps=self.step - self.recipe.first_step,
            tokens=self.tokens,
            minutes=round(self.seconds / 60),
            where=where(self.device),
            before=self.recipe.first_step,
            schedule=self.recipe.schedule(),
        )
        path.write_text(card(run, losses, results))


def main() -> None:
    """Read the command line, train, export and evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build" / "train_demo",
        help="folder of checkpoint and log",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "src" / "wherry" / "demo",
        help="folder of the exported model",
    )
    parser.add_argument("--start", type=Path, help="folder of an exported model to train further")
    parser.add_argument("--first-step", type=int, default=0, help="how many steps it has had")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--decay-steps", type=int, default=Recipe.decay_steps)
    parser.add_argument("--peak", type=float, default=1.0, help="factor of the learning rates")
    parser.add_argument("--minutes", type=float, help="in place of --steps: as many as fit")
    parser.add_argument("--wider", type=int, default=1, help="times as many rows in a batch")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=0, help="that make text ahead of its use")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe = Recipe(
        steps=sys.maxsize if arguments.minutes else arguments.steps,
        decay_steps=arguments.decay_steps,
        first_step=arguments.first_step,
        wider=arguments.wider,
        peak=arguments.peak,
    )
    trainer = Trainer(
        recipe, arguments.work, arguments.start, arguments.device, arguments.processes
    )
    if arguments.minutes:
        trainer.fit(arguments.minutes)
    trainer.run()
    export(trainer.model, trainer.tokenizer, arguments.output)
    check(trainer.model, arguments.output)
    trainer.write_report(arguments.output / "README.md")


if __name__ == "__main__":
    main()
