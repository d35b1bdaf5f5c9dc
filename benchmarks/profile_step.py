"""Where the time of a step goes: `python -m benchmarks.profile_step COMPILED_FOLDER`.

Runs the library in TVM's virtual machine with an instrument around every call and adds up CPU time
by callee. Every call into Python adds a few microseconds, which are not removed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from wherry.artifact import read_manifest
from wherry.compiler.weight_cache import load_state


class Profile:
    """CPU seconds and calls by callee, a dictionary a step; the instrument of a VM."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.labels: dict[str, str] = {}
        self._begin: list[float] = []

    def __call__(self, _func: Any, name: str, before: bool, _result: Any, *args: Any) -> int:
        """See relax.VirtualMachine.set_instrument; 0: go on."""
        now = time.process_time()
        if before:
            if name not in self.labels:
                self.labels[name] = " ".join(
                    "x".join(map(str, a.shape)) for a in args if isinstance(a, tvm.runtime.Tensor)
                )
            self._begin.append(time.process_time())
        else:
            self.seconds[name] += now - self._begin.pop()
            self.calls[name] += 1
        return 0


class Step:
    """A compiled folder, and one sequence of it that owns the pages 0, 1, 2, ..."""

    def __init__(self, folder: Path, context: int) -> None:
        self.context = context
        manifest = read_manifest(folder)
        module = tvm.runtime.load_module(str(folder / manifest.library))
        self.vm = relax.VirtualMachine(module, tvm.cpu())
        metadata = json.loads(str(self.vm["_metadata"]()))
        stored = load_state(folder)
        made: dict[tuple[str, ...], Any] = {}
        self.params = [self._parameter(entry, stored, made) for entry in metadata["params"]]
        (state,) = metadata["state"]
        self.page_size = metadata["page_size"]
        self.vocab = metadata["vocab_size"]
        pages = np.zeros((-(-context // self.page_size), *state["shape"]), state["dtype"])
        self.state = [tvm.runtime.tensor(pages) for _ in range(state["layers"])]

    def _parameter(self, entry: dict[str, Any], stored: Any, made: dict[Any, Any]) -> Any:
        key = (entry.get("pack", ""), *entry["from"])
        if key not in made:
            sources = [tvm.runtime.tensor(stored[name]) for name in entry["from"]]
            made[key] = self.vm[entry["pack"]](*sources) if "pack" in entry else sources[0]
        return made[key][entry["index"]] if "index" in entry else made[key]

    def run(self, rows: int, depth: int) -> None:
        """`rows` tokens after `depth`; the logits of the last."""
        pages = -(-(depth + rows) // self.page_size)
        tokens = np.random.default_rng(depth).integers(0, self.vocab, rows)
        arrays: list[Any] = [tokens, range(depth, depth + rows), [0] * rows, [0, rows], [0, pages]]
        arrays += [range(pages), [rows - 1]]
        inputs = [tvm.runtime.tensor(np.array(list(a), np.int32)) for a in arrays]
        self.vm["forward"](*inputs, *self.state, *self.params)


def bare(step: Step, rows: int, depth: int, repeats: int) -> float:
    """Median CPU seconds of a step without an instrument."""
    step.run(rows, depth)
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        step.run(rows, depth)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def profile(step: Step, rows: int, depth: int, repeats: int) -> list[dict[str, Any]]:
    """Median CPU seconds of each callee in a step, the most expensive first."""
    step.run(rows, depth)
    profiles = []
    for _ in range(repeats):
        one = Profile()
        step.vm.set_instrument(one)
        step.run(rows, depth)
        profiles.append(one)
    first = profiles[0]
    names = sorted(first.calls)
    result = [
        {
            "name": name,
            "calls": first.calls[name],
            "cpu_s": statistics.median(p.seconds[name] for p in profiles),
            "shapes": first.labels[name],
        }
        for name in names
    ]
    return sorted(result, key=lambda r: -float(r["cpu_s"]))


def report(lines: list[dict[str, Any]]) -> str:
    """A table: share, milliseconds a step, calls, microseconds a call, callee, shapes."""
    total = sum(line["cpu_s"] for line in lines)
    rows = [f"{total * 1e3:.3f} ms in all", "share    ms/step  calls   us/call  callee"]
    for line in lines:
        cpu, calls = line["cpu_s"], line["calls"]
        rows.append(
            f"{cpu / total:5.1%} {cpu * 1e3:10.3f} {calls:6d} {cpu / calls * 1e6:9.1f}  "
            f"{line['name']}  {line['shapes'][:100]}"
        )
    return "\n".join(rows)


def main() -> None:
    """Profile a decode and a prefill step, and print tables or JSON."""
    parser = argparse.ArgumentParser(description="CPU time of a step, by kernel.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--depth", type=int, default=128, help="context of the decode step")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    configure = tvm.get_global_func("runtime.config_threadpool")
    configure(-3, a.threads, [str(i) for i in range(a.threads)])  # -3: on any core
    step = Step(a.folder, max(a.depth + 1, a.prefill))
    result: dict[str, dict[str, Any]] = {}
    for name, rows, depth, repeats in (
        (f"prefill of {a.prefill}", a.prefill, 0, 5),
        (f"decode at {a.depth}", 1, a.depth, 25),
    ):  # bare first: an instrument cannot be taken away again
        other = step if not result else Step(a.folder, step.context)
        alone = bare(other, rows, depth, repeats)
        result[name] = {"cpu_s": alone, "calls": profile(other, rows, depth, repeats)}
    if a.json:
        print(json.dumps(result, indent=1))
        return
    for name, found in result.items():
        print(f"{name}: {found['cpu_s'] * 1e3:.3f} ms without instrument; with it:")
        print(report(found["calls"]), end="\n\n")


if __name__ == "__main__":
    main()
