"""Compares Wherry with llama.cpp on this CPU: `python -m benchmarks.cpu`; see README.md.

Both engines have equal random weights and run in turn (A B A B), each run in its own process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from wherry.artifact.manifest import MANIFEST

from . import roofline
from .busy import busy_cores, warning
from .drive_llama import Llama, run_child
from .make_models import DEFAULT_FOLDER, gguf_file, hf_folder, quantized_file
from .rows import ROWS, machine, versions, write_row
from .shapes import LARGE, SHAPES, inactive_numbers, weight_shapes

DEPTH = 96  # tokens of context before the first measured token
USUAL_BATCH = 32  # sequences that models are compiled for if nothing asks for more
CONTEXT = 2048  # tokens that models are compiled for at least
PEERS = {"q4f16_1": "q4_0", "q8f16_1": "q8_0", "q0f16": "f16", "q0f32": "f32"}
# Both engines read one file, as llama.cpp's quantizer mixes its types.
MIXES = ("Q4_0", "Q8_0", "Q2_K", "Q3_K_M", "IQ4_XS", "Q4_K_M", "Q5_K_M", "Q6_K")


@dataclass(frozen=True, slots=True)
class Workload:
    """A measured phase: prefill, or decoding at some batch size and context."""

    name: str
    prefill: int = 0
    batch: int = 1
    tokens: int = 0
    depth: int = DEPTH

    @property
    def context(self) -> int:
        """Return the tokens that a model has to be compiled for."""
        return max(CONTEXT, self.prefill + 1, 2 * self.depth if self.depth > CONTEXT else 0)

    @property
    def rows(self) -> int:
        """Return the number of tokens that the phase computes."""
        return self.prefill or self.batch * self.tokens


WORKLOADS = {
    w.name: w
    for w in (
        Workload("decode", tokens=128),
        Workload("decode-1536", tokens=128, depth=1536),  # longer than the models' sliding windows
        Workload("decode-8192", tokens=64, depth=8192),
        Workload("decode-32768", tokens=16, depth=32768),
        Workload("prefill", prefill=512),
        Workload("prefill-2048", prefill=2048),
        Workload("prefill-8192", prefill=8192),
        Workload("batch8", batch=8, tokens=64),
        Workload("batch16", batch=16, tokens=32),
        Workload("batch32", batch=32, tokens=32),
        Workload("batch64", batch=64, tokens=16),
    )
}


USUAL = ["decode", "prefill", "batch8"]


def compile_model(
    model: Path, quant: str | None, options: dict[str, int | str]
) -> tuple[Path, dict[str, float]]:
    """Convert and compile a model; return its folder, and the wall and CPU seconds of both steps.

    quant: None for a file that keeps its types; options: of `wherry compile`, by name.

    A step whose result the cache has is not timed: empty WHERRY_CACHE to measure it.
    """
    times: dict[str, float] = {}
    started = time.time()
    for command in ("convert", "compile"):
        arguments = [sys.executable, "-m", "wherry", command, str(model)]
        arguments += ["--quant", quant] if quant else []
        begin = time.perf_counter()
        more = [str(part) for option in options.items() for part in option]
        output = run_child(arguments + (more if command == "compile" else []))
        times |= {f"{command}_s": time.perf_counter() - begin, f"{command}_cpu_s": output.cpu_s}
    compiled = Path(output.text.strip().splitlines()[-1])
    assert (compiled / MANIFEST).is_file(), compiled
    return compiled, times if (compiled / MANIFEST).stat().st_mtime >= started else {}


def wherry_run(folder: Path, load: Workload, threads: int) -> dict[str, Any]:
    """Run a workload once with Wherry; return its times."""
    command = [sys.executable, "-m", "benchmarks.drive_wherry", str(folder)]
    command += ["--threads", str(threads), "--depth", str(load.depth)]
    if load.prefill:
        command += ["--prefill", str(load.prefill)]
    else:
        command += ["--batch", str(load.batch), "--tokens", str(load.tokens)]
    output = run_child(command)
    return dict(json.loads(output.text)) | {"peak_bytes": output.peak_bytes}


def llama_run(llama: Llama, load: Workload) -> dict[str, Any]:
    """Run a workload once with llama.cpp; return its times."""
    if load.prefill:
        return llama.prefill(load.prefill)
    if load.batch == 1:
        return llama.decode(load.depth, load.tokens)
    return llama.decode_batch(load.batch, load.depth, load.tokens)


def bandwidth(threads: int) -> float:
    """Return the bytes per second that `threads` threads can read now."""
    command = [sys.executable, "-m", "benchmarks.bandwidth", "--threads", str(threads)]
    return float(json.loads(run_child(command).text)["bytes_per_s"])


def summary(
    runs: list[dict[str, Any]], load: Workload, speed: float, active: float = 1.0
) -> dict[str, Any]:
    """Return medians of one engine's runs.

    `bandwidth_share` is (bytes of weights that a step reads, the share `active` of all, of keys and
    values, and of recurrent states, which it reads and writes) / (time of a step) / (the CPU's read
    bandwidth).
    """
    wall, cpu = (statistics.median(r[k] for r in runs) for k in ("wall_s", "cpu_s"))
    result: dict[str, Any] = {
        "runs": runs,
        "peak_bytes": max((r["peak_bytes"] for r in runs if "peak_bytes" in r), default=None),
        "tokens_per_s": load.rows / wall,
        "tokens_per_cpu_s": load.rows / cpu,
        "wall_s": wall,
        "cpu_s": cpu,
    }
    size = next((r["weight_bytes"] for r in runs if "weight_bytes" in r), None)
    if size and load.tokens and (load.batch == 1 or active == 1.0):
        size *= active
        for each in ("state_bytes", "cache_bytes"):
            size += load.batch * next((r[each] for r in runs if each in r), 0)
        result["bandwidth_share"] = size * load.tokens / wall / speed
        result["bandwidth_share_of_cpu_time"] = size * load.tokens / cpu / speed
    return result


def compare(
    folder: Path, llama: Llama, load: Workload, pairs: int, active: float = 1.0
) -> dict[str, Any]:
    """Run both engines in turn; return a part of a row. With a ratio above 1, Wherry is faster."""
    others = busy_cores()
    if said := warning(others):
        print(f"warning: {said}", file=sys.stderr)
    speed = bandwidth(llama.threads)
    runs: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for _ in range(pairs):
        runs[0].append(wherry_run(folder, load, llama.threads))
        runs[1].append(llama_run(llama, load))
    speed = max(speed, bandwidth(llama.threads))
    a, b = (summary(side, load, speed, active) for side in runs)
    return {
        "busy_cores_before": others,
        "warning": said,
        "ratio_wall": b["wall_s"] / a["wall_s"],
        # llama.cpp's is the difference of two runs, which drowns in that of long contexts
        "ratio_cpu": b["cpu_s"] / a["cpu_s"] if load.depth <= CONTEXT else None,
        "bandwidth": speed,
        "wherry": a,
        "llama.cpp": b,
    }


def active_share(shape: str) -> float:
    """Return the share of the weights that a token uses."""
    numbers = sum(prod(s) for s in weight_shapes(SHAPES[shape]).values())
    return 1 - inactive_numbers(SHAPES[shape]) / numbers


def main() -> None:
    """Measure the named shapes, threads and workloads; write a row for each."""
    parser = argparse.ArgumentParser(description="Compare Wherry with llama.cpp on this CPU.")
    usual = [shape for shape in SHAPES if shape not in LARGE]
    parser.add_argument("--shapes", nargs="+", default=usual, choices=list(SHAPES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--workloads", nargs="+", default=USUAL, choices=list(WORKLOADS))
    parser.add_argument("--quant", default="q4f16_1", choices=[*PEERS, *MIXES])
    parser.add_argument("--activations", choices=["bf16", "float"], help="default: int8")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--models", type=Path, default=DEFAULT_FOLDER, help="of make_models")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument(
        "--roofline", action="store_true", help="measure kernels alone, without a peer; 4 minutes"
    )
    a = parser.parse_args()
    if a.roofline:
        own = [sys.executable, "-m", "benchmarks.cpu", "--roofline", "--rows", str(a.rows)]
        if len(a.threads) == 1:
            roofline.main(a.threads[0], a.rows)
        for count in a.threads if len(a.threads) > 1 else ():
            # a process of its own: TVM's pool keeps the cores of its first number of threads
            print(run_child([*own, "--threads", str(count)]).text, end="", flush=True)
        return
    loads = [WORKLOADS[name] for name in a.workloads]
    options: dict[str, int | str] = {"--context": max(load.context for load in loads)}
    if (batch := max(load.batch for load in loads)) > USUAL_BATCH:
        options["--max-batch"] = batch
    if a.activations:
        options["--activations"] = a.activations
    for shape in a.shapes:
        if a.quant in MIXES:
            peer = quantized_file(a.models, shape, a.quant)
            compiled, times = compile_model(peer, None, options)
        else:
            peer = gguf_file(a.models, shape, PEERS[a.quant])
            compiled, times = compile_model(hf_folder(a.models, shape), a.quant, options)
        for threads in a.threads:
            llama = Llama.from_environment(peer, threads)
            for load in loads:
                row = {"what": load.name, "shape": shape, "threads": threads}
                row |= {
                    "quant": f"{a.quant}-{a.activations}" if a.activations else a.quant,
                    "peer": PEERS.get(a.quant, a.quant),
                    "depth": load.depth,
                    "rows": load.rows,
                }
                row |= {"machine": machine(), "versions": versions()}
                row |= compare(compiled, llama, load, a.pairs, active_share(shape))
                row |= {"making": times}
                print(write_row(a.rows, row), f"{row['ratio_wall']:.2f}", row["ratio_cpu"] or "")


if __name__ == "__main__":
    main()
