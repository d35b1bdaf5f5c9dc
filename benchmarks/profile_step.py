"""Profiles a step: `python -m benchmarks.profile_step COMPILED_FOLDER`.

Runs the library in TVM's virtual machine with an instrument around every call and adds up times by
callee: CPU time with one thread, wall time with more (waiting threads spin). Each call into Python
adds a few microseconds, which are not subtracted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from wherry.artifact.manifest import read_manifest
from wherry.compiler.weight_cache import load_state

Clock = Callable[[], float]


class Profile:
    """Seconds and calls by callee, one dictionary per step; it is the VM's instrument."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.labels: dict[str, str] = {}
        self._begin: list[float] = []

    def __call__(self, _func: Any, name: str, before: bool, _result: Any, *args: Any) -> int:
        """Time a call of the virtual machine; see relax.VirtualMachine.set_instrument.

        Returns 0, which means continue.
        """
        now = self.clock()
        if before:
            if name not in self.labels:
                self.labels[name] = " ".join(
                    "x".join(map(str, a.shape)) for a in args if isinstance(a, tvm.runtime.Tensor)
                )
            self._begin.append(self.clock())
        else:
            self.seconds[name] += now - self._begin.pop()
            self.calls[name] += 1
        return 0


class Step:
    """A compiled folder, and sequences whose pages are contiguous, to run single steps."""

    def __init__(self, folder: Path, context: int, sequences: int) -> None:
        manifest = read_manifest(folder)
        module = tvm.runtime.load_module(str(folder / manifest.library))
        self.vm = relax.VirtualMachine(module, tvm.cpu())
        metadata = json.loads(str(self.vm["_metadata"]()))
        stored = load_state(folder)
        packed: dict[tuple[str, ...], Any] = {}
        self.params = [self._parameter(entry, stored, packed) for entry in metadata["params"]]
        self.inputs = metadata["inputs"]
        self.page_size = metadata["page_size"]
        self.vocab = metadata["vocab_size"]
        count = sequences * -(-context // self.page_size)
        self.state = [
            tvm.runtime.tensor(np.zeros((count, *state["shape"]), state["dtype"]))
            for state in metadata["state"]
            for _ in range(state["layers"])
        ]

    def _parameter(self, entry: dict[str, Any], stored: Any, packed: dict[Any, Any]) -> Any:
        key = (entry.get("pack", ""), *entry["from"])
        if key not in packed:
            sources = [tvm.runtime.tensor(stored[name]) for name in entry["from"]]
            packed[key] = self.vm[entry["pack"]](*sources) if "pack" in entry else sources[0]
        return packed[key][entry["index"]] if "index" in entry else packed[key]

    def run(self, batch: int, rows: int, depth: int) -> None:
        """Run `rows` tokens of each of `batch` sequences after `depth`; return the last logits."""
        pages = -(-(depth + rows) // self.page_size)
        every = range(batch)
        tokens = np.random.default_rng(depth).integers(0, self.vocab, batch * rows)
        named: dict[str, list[Any]] = {
            "tokens": [tokens],
            "positions": [[depth + i for _ in every for i in range(rows)]],
            "sequences": [[s for s in every for _ in range(rows)]],
            "query_indptr": [range(0, (batch + 1) * rows, rows)],
            # page tables of every cache group
            "pages": [range(0, (batch + 1) * pages, pages), range(batch * pages)],
            "logit_rows": [range(rows - 1, batch * rows, rows)],
        }
        arrays = [array for name in self.inputs for array in named[name.partition(".")[0]]]
        inputs = [tvm.runtime.tensor(np.array(list(a), np.int32)) for a in arrays]
        self.vm["forward"](*inputs, *self.state, *self.params)


Work = tuple[int, int, int]  # batch, rows, depth


def bare(step: Step, work: Work, clock: Clock, repeats: int) -> float:
    """Return the median seconds of a step without an instrument."""
    step.run(*work)
    times = []
    for _ in range(repeats):
        begin = clock()
        step.run(*work)
        times.append(clock() - begin)
    return statistics.median(times)


def profile(step: Step, work: Work, clock: Clock, repeats: int) -> list[dict[str, Any]]:
    """Return the median seconds of each callee in a step, the most expensive one first."""
    step.run(*work)
    profiles = []
    for _ in range(repeats):
        one = Profile(clock)
        step.vm.set_instrument(one)
        step.run(*work)
        profiles.append(one)
    first = profiles[0]
    names = sorted(first.calls)
    result = [
        {
            "name": name,
            "calls": first.calls[name],
            "seconds": statistics.median(p.seconds[name] for p in profiles),
            "shapes": first.labels[name],
        }
        for name in names
    ]
    return sorted(result, key=lambda r: -float(r["seconds"]))


def report(lines: list[dict[str, Any]]) -> str:
    """Format a table: share, ms per step, calls, us per call, callee, shapes."""
    total = sum(line["seconds"] for line in lines)
    rows = [f"{total * 1e3:.3f} ms in all", "share    ms/step  calls   us/call  callee"]
    for line in lines:
        seconds, calls = line["seconds"], line["calls"]
        rows.append(
            f"{seconds / total:5.1%} {seconds * 1e3:10.3f} {calls:6d} "
            f"{seconds / calls * 1e6:9.1f}  {line['name']}  {line['shapes'][:100]}"
        )
    return "\n".join(rows)


def main() -> None:
    """Profile a decode and a prefill step; print tables or JSON."""
    parser = argparse.ArgumentParser(description="Time of a step, by kernel.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--depth", type=int, default=128, help="context of the decode steps")
    parser.add_argument("--prefill", type=int, default=512, help="rows of a prompt; 0: none")
    parser.add_argument("--batch", type=int, nargs="+", default=[1], help="sequences that decode")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    configure = tvm.get_global_func("runtime.config_threadpool")
    # mode -3: no thread is bound to a core
    configure(-3, a.threads, [str(i) for i in range(a.threads)])
    clock = time.process_time if a.threads == 1 else time.perf_counter
    steps: list[tuple[str, Work, int]] = [
        (f"{batch} x decode at {a.depth}", (batch, 1, a.depth), 25) for batch in a.batch
    ]
    if a.prefill:
        steps.insert(0, (f"prefill of {a.prefill}", (1, a.prefill, 0), 5))
    result: dict[str, dict[str, Any]] = {}
    for name, work, repeats in steps:  # first without the instrument, because it cannot be removed
        step = Step(a.folder, work[1] + work[2], work[0])
        alone = bare(step, work, clock, repeats)
        result[name] = {"seconds": alone, "calls": profile(step, work, clock, repeats)}
    if a.json:
        print(json.dumps(result, indent=1))
        return
    for name, measured in result.items():
        print(f"{name}: {measured['seconds'] * 1e3:.3f} ms without instrument; with it:")
        print(report(measured["calls"]), end="\n\n")


if __name__ == "__main__":
    main()
