"""Runs a bundle on a machine with a GPU and writes the results.

`python -m benchmarks.gpu.check BUNDLE OUT [PART...]`. Each piece runs in its own process with a
time limit, so a failure does not stop the rest. OUT gets report.txt, replays.jsonl, rows.jsonl,
profiles.jsonl, peers.jsonl.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

BUDGET_S = 600.0  # seconds of the whole check
PIECE_S = 180.0  # seconds of one process
REPLAYS = 8  # processes that replay at a time
USUAL = ("models", "kernels", "large", "peers")  # default parts, in the order in which they run
PARTS = (*USUAL, "llama")  # llama compiles llama.cpp first, so it runs only on request
TOP = 8  # kernels of a profile that the report lists


class Check:
    """The results so far, which are always on disk."""

    def __init__(self, bundle: Path, out: Path) -> None:
        self.bundle, self.out, self.begin = bundle, out, time.monotonic()
        description = json.loads((bundle / "bundle.json").read_text())
        self.device, self.sizes = description["device"], json.dumps(description["sizes"])
        self.peers: dict[str, Any] = description["peers"]  # shape name -> its config.json
        self.linears: dict[str, int] = description[
            "linears"
        ]  # shape name -> weights that each prompt token multiplies
        out.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """Return the seconds that are left of the budget."""
        return BUDGET_S - (time.monotonic() - self.begin)

    def say(self, text: str) -> None:
        """Print a line of the report with the time, and append it to the file."""
        line = f"{time.monotonic() - self.begin:6.1f} {text}"
        print(line, flush=True)
        with (self.out / "report.txt").open("a") as file:
            file.write(line + "\n")

    def run(
        self, module: str, *arguments: str, most_s: float = PIECE_S
    ) -> tuple[list[dict[str, Any]], str]:
        """Run a module; return its JSON lines, and the end of its output if it failed."""
        command = [sys.executable, "-m", f"benchmarks.gpu.{module}", *arguments]
        limit = max(min(most_s, self.left()), 1.0)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            out, words, status = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as e:
            out, words, status = _text(e.stdout), _text(e.stderr), -1
        lines = [json.loads(x) for x in out.splitlines() if x.startswith("{")]
        return lines, f"status {status}: {words[-1500:]}" if status else ""

    def keep(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Append lines to a file of the results."""
        with (self.out / name).open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def replay(self, kind: str, folders: list[Path]) -> None:
        """Replay recorded calls of all folders, in several processes at a time."""
        with ThreadPoolExecutor(REPLAYS) as pool:
            shares = [folders[i::REPLAYS] for i in range(REPLAYS)]
            lines = [
                line for share in pool.map(partial(self._share, kind), shares) for line in share
            ]
        self.keep("replays.jsonl", lines)
        failed = [line for line in lines if not line["ok"]]
        self.say(f"{kind}s: {len(lines) - len(failed)} of {len(folders)} right")
        if len(lines) < len(folders):
            self.say(f"  no time for {len(folders) - len(lines)}")
        for line in failed:
            what = line.get("error") or line.get("wrong") or line
            self.say(f"  {line.get('test', line['name'])}: {str(what)[-600:]}")

    def _share(self, kind: str, folders: list[Path]) -> list[dict[str, Any]]:
        """Replay some folders; after a crash the next one runs in a new process."""
        rows: list[dict[str, Any]] = []
        while len(rows) < len(folders) and self.left() > 0:
            left = folders[len(rows) :]
            lines, problem = self.run("replay", kind, self.device, *map(str, left))
            if len(lines) < len(left) and (not lines or lines[-1]["ok"]):
                name = left[len(lines)].name
                lines.append({"kind": kind, "name": name, "ok": False, "error": problem})
            rows += lines
        return rows

    def measure(self, folder: Path, card: dict[str, Any]) -> None:
        """Measure a large model with Wherry, and write a row."""
        lines, problem = self.run("measure", str(folder), self.device, self.sizes)
        self.keep("profiles.jsonl", [line for line in lines if "profile" in line])
        rows = [line for line in lines if "profile" not in line]
        self.keep("rows.jsonl", [row | {"card": card} for row in rows])
        for row in rows:
            self.say(f"{row['model']}: {self._prompt(row, card)}")
            if reason := row["steps"]["graphs_given_up"]:
                self.say(f"  CUDA graphs were given up: {reason}")
            if reason := row["steps"]["chains_given_up"]:
                self.say(f"  no step was launched ahead: {reason}")
            for name in (n for n in row if n.startswith("decode_")):
                share = row[name]["bytes_s"] / card.get("copy_bytes_s", float("nan"))
                self.say(f"  {name}: {row[name]['tokens_s']:.0f} tokens/s, {share:.0%} of a copy")
        for line in lines:
            for phase, times in line.get("profile", {}).items():
                self.say(f"  {phase}: {_spent(times)}")
        if problem:
            self.say(f"{folder.name}: {problem}")

    def _prompt(self, row: dict[str, Any], card: dict[str, Any]) -> str:
        """Describe a row's prefill in the report; only the linears' operations are counted."""
        if "prefill_tokens_s" not in row:
            return "without graphs"
        speed = row["prefill_tokens_s"]
        shape = row["model"].partition("-")[2].rpartition("-")[0]
        share = 2 * self.linears[shape] * speed / card.get("bf16_flop_s", float("nan"))
        return f"prefill {speed:.0f} tokens/s, {share:.0%} of a matrix product"

    def peer(self, name: str) -> None:
        """Measure a large model with transformers, and write a row."""
        rows, problem = self.run("peer", name, json.dumps(self.peers[name]), self.sizes)
        self._keep_peers(rows[-1:], f"peer of {name}: {problem}" if problem else "")

    def llama(self) -> None:
        """Measure the large models with llama.cpp, and write the rows."""
        models = [f"{name}={json.dumps(config)}" for name, config in self.peers.items()]
        given = [str(self.bundle / "llama"), *models, "--sizes", self.sizes]
        cpu = () if self.device == "cuda" else ("--device", "cpu")
        rows, problem = self.run("llama", *given, *cpu, most_s=BUDGET_S)
        self._keep_peers(rows, f"llama.cpp: {problem}" if problem else "")

    def _keep_peers(self, rows: list[dict[str, Any]], problem: str) -> None:
        self.keep("peers.jsonl", rows)
        for row in rows:
            steps = ", ".join(
                f"{n} {row[n]['tokens_s']:.0f}" for n in row if n.startswith("decode_")
            )
            first = f"prefill {row['prefill_tokens_s']:.0f} tokens/s"
            self.say(f"{row['peer']} of {row['model']} in {row['quant']}: {first}, {steps}")
        if problem:
            self.say(problem)


def _spent(profile: dict[str, Any]) -> str:
    """Describe the time of a step: a line for the total, and a line for each kernel."""
    busy, span = profile["busy_us"], profile["span_us"]
    lines = [f"{profile['launches']:.0f} launches, busy {busy:.0f} of {span:.0f} us a step"]
    for kernel in profile["kernels"][:TOP]:
        shape = f"{kernel['grid']} x {kernel['block']}"
        lines.append(
            f"{kernel['share']:6.1%} {kernel['us']:8.1f} us in {kernel['calls']:.0f} calls of "
            f"{kernel['name']} {shape}, {kernel['registers per thread']} registers"
        )
    return "\n    ".join(lines)


def _text(content: str | bytes | None) -> str:
    return content.decode(errors="replace") if isinstance(content, bytes) else content or ""


def folders(place: Path) -> list[Path]:
    """Return the subfolders of a folder of the bundle, sorted; [] if it does not exist."""
    return sorted(p for p in place.iterdir() if p.is_dir()) if place.is_dir() else []


def main() -> None:
    """Run all parts of the check, or those that are named on the command line."""
    bundle, out, *parts = sys.argv[1:]
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    check = Check(Path(bundle), Path(out))
    cards, problem = check.run("card")
    card = cards[0] if cards else {}
    check.say(problem or json.dumps(card))
    large = folders(check.bundle / "large")
    for part in parts or USUAL:
        if part in ("models", "kernels"):
            check.replay(part.removesuffix("s"), folders(check.bundle / part))
        elif part == "large":
            for folder in large:
                if check.left() > 20:
                    check.measure(folder, card)
        elif part == "llama":
            check.llama()
        else:
            for name in check.peers:
                if check.left() > 20:
                    check.peer(name)
    check.say("done")


if __name__ == "__main__":
    main()
