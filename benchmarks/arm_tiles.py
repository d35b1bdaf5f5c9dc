"""Estimates the throughput of Arm's tiles by llvm-mca: `python -m benchmarks.arm_tiles`.

It compares the tile of matrix instructions (i8mm) with that of dot products, in models of cores.
llvm-mca simulates the ports of a core on one loop, without caches and without the rest of the
program: the ratios are limits of what a machine can show. `LLVM_MCA` names the program, of LLVM 18
or later, because older ones know no Neoverse V1 and V2. Apple's M1 stands for the M2, which has
i8mm, but no model.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.target import Target

from wherry.compiler.library.build import code_generation
from wherry.ops import LinearSpec
from wherry.targets.kernels.cpu import CpuKernels, isa_from_features
from wherry.targets.kernels.cpu.int_layout import GROUP
from wherry.targets.kernels.cpu.quantized_linear import rows_together
from wherry.targets.kernels.cpu.tiles import PANEL
from wherry.targets.target import find

from .rows import ROWS, machine, versions, write_row

CORES = ("neoverse-n2", "neoverse-v1", "neoverse-v2", "cortex-a510", "apple-m1")
SCHEMES = {"q4": "q4f16_1", "q8": "q8f16_1"}
SHAPE = (512, 2048)  # output columns, input columns
ROWS_OF_TILE = 8
ROWS_OF_BLOCK = rows_together(2 * SHAPE[1])  # of prompts; a block unpacks its weights once
ITERATIONS = 200
_TILE_PRODUCTS = ROWS_OF_TILE * PANEL * GROUP // 4  # of a loop's iteration: a quarter of a panel


@dataclass(frozen=True, slots=True)
class Loops:
    """Innermost loops of a kernel: its tiles of 8 rows, and the unpacking of weights if any."""

    tiles: list[str]
    unpacking: list[str]


def assembly(target: str, scheme: str) -> str:
    """Return a linear's code for a target."""
    preset = find(target)
    n, k = SHAPE
    spec = LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype="float16")
    linear = CpuKernels(isa_from_features(preset.features)).linear(spec)
    assert linear is not None
    module = tvm.IRModule({"kernel": linear.compute.with_attr("global_symbol", "kernel")})
    device = Target(dict(preset.device))
    with code_generation(device):
        return str(tvm.compile(module, target=device).mod.inspect_source("asm"))


def innermost(code: str) -> Iterator[str]:
    """Yield the bodies of innermost loops: from a label to the branch back, no other between."""
    label, body = "", list[str]()
    for line in code.splitlines():
        if match := re.match(r"(\.L\w+):", line):
            label, body = match[1], []
        elif line.startswith("\t") and not line.strip().startswith((".", "//")):
            body.append(line.partition("//")[0])
            branch = re.search(r"\t(?:b\.\w+|cbn?z\t\w+,)\s*(\.L\w+)", line)
            if branch and branch[1] == label:
                yield "\n".join(body)


def loops_of(code: str, instruction: str, products: int) -> Loops:
    """Return the loops of a kernel, whose `instruction` computes `products` products."""
    bodies = list(innermost(code))
    count = _TILE_PRODUCTS // products
    tiles = [body for body in bodies if len(re.findall(rf"\t{instruction}\t", body)) == count]
    # what prefetches weights and multiplies none
    unpacking = [b for b in bodies if "\tprfm\t" in b and not re.search(r"sdot|mmla", b)]
    assert len(tiles) >= 2, f"found {len(tiles)} loops with {count} {instruction}"
    assert len(unpacking) == (instruction != "sdot"), f"{len(unpacking)} loops unpack weights"
    return Loops(tiles, unpacking)


def cycles(body: str, core: str) -> float:
    """Return the cycles of a loop's iteration."""
    program = os.environ.get("LLVM_MCA", "llvm-mca")
    command = [program, "-mtriple=aarch64", f"-mcpu={core}", "-mattr=+i8mm,+dotprod"]
    text = "label:\n" + re.sub(r"\.L\w+", "label", body) + "\n"
    done = subprocess.run(
        [*command, f"-iterations={ITERATIONS}"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    match = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    assert match, done.stdout[:500]
    return int(match[1]) / ITERATIONS


def rate(loops: Loops, core: str) -> float:
    """Return products a cycle in a block of rows, with the unpacking of its weights."""
    tile = sum(cycles(body, core) for body in loops.tiles) / len(loops.tiles)
    unpacking = sum(cycles(body, core) for body in loops.unpacking)
    tiles = ROWS_OF_BLOCK // ROWS_OF_TILE * 4
    return tiles * _TILE_PRODUCTS / (tiles * tile + unpacking)


def compare(scheme: str) -> dict[str, Any]:
    """Return a row that compares the tiles of a scheme."""
    matrix = {"q4": "smmla", "q8": "usmmla"}[scheme]
    pairs = loops_of(assembly("cpu:armv8-a+dotprod+i8mm", scheme), matrix, 32)
    rows = loops_of(assembly("cpu:armv8-a+dotprod", scheme), "sdot", 16)
    rates = {
        core: {"i8mm": round(rate(pairs, core), 2), "dotprod": round(rate(rows, core), 2)}
        for core in CORES
    }
    program = os.environ.get("LLVM_MCA", "llvm-mca")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return {
        "what": "i8mm",
        "shape": "linear-{}x{}".format(*SHAPE),
        "threads": 1,
        "quant": SCHEMES[scheme],
        "machine": machine(),
        "versions": versions() | {"llvm-mca": said.stdout.split("\n")[0].strip()},
        "products_per_cycle": rates,
        "ratio_i8mm": {c: round(r["i8mm"] / r["dotprod"], 3) for c, r in rates.items()},
    }


def main() -> None:
    """Write a row for each scheme."""
    for scheme in SCHEMES:
        row = compare(scheme)
        print(write_row(ROWS, row).name, row["ratio_i8mm"])


if __name__ == "__main__":
    main()
