"""Writes docs/performance.md from the rows: `python -m benchmarks.table`; see `make docs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .rows import ROWS, read_rows

Row = dict[str, Any]
HEAD = """# Performance

Wherry and a peer ran equal shapes and random weights on one machine, in turn, in one run. A ratio
above 1 means that Wherry takes less time. Absolute times of a shared machine mean little, so rows
keep ratios. The newest row of each kind is shown. [How to repeat them](../benchmarks/README.md).

On CPUs with AMX, int8 prompts take twice the time of torch's in bfloat16; `--activations bf16` is
for them. On an Emerald Rapids that is shared (equal code took up to four times as long a second
later), 512 tokens of Llama 3.2 1B in 4 bits took 0.4 to 0.6 of the time of int8 on a thread; the
row below compares it with llama.cpp's AMX code (clang 19). Against torch it is undecided: 314,
170 and 126 tokens/s, torch 268 at best and 192 in the median, one after the other. Linears alone
run at 0.35 of the units' peak with 512 rows; the rest is lost between L2 and the tiles.
"""

RATIOS = {
    "ratio_wall": "wall time",
    "ratio_cpu": "CPU time",
    "ratio_tokens_per_second": "tokens/s",
    "ratio_first_token": "first token",
    "ratio_prefill_wall_s": "prefill",
    "ratio_decode_wall_s": "decode",
    "ratio_torch_cpu": "against torch, CPU time",
    "ratio_onnxruntime_cpu": "against ONNX Runtime, CPU time",
}  # fields of ratios to a peer, and how the page calls them


def cpu(rows: Iterable[Row]) -> Iterable[list[str]]:
    """Models on a CPU, compared with llama.cpp."""
    yield [
        "model", "scheme", "workload", "threads", "ratio, wall", "ratio, CPU time",
        "share of the memory bandwidth", "machine", "commit",
    ]  # fmt: skip
    for row in rows:
        if "llama.cpp" not in row:
            continue
        share = row["wherry"].get("bandwidth_share")
        yield [
            row["shape"], row["quant"], row["what"], str(row["threads"]),
            f"{row['ratio_wall']:.2f}", f"{row['ratio_cpu']:.2f}" if row["ratio_cpu"] else "",
            "" if share is None else f"{share:.0%}", *_origin(row),
        ]  # fmt: skip


def roofline(rows: Iterable[Row]) -> Iterable[list[str]]:
    """Kernels of a CPU, alone, with operands from memory: shares of its peak and bandwidth."""
    yield [
        "kernel", "scheme", "rows", "threads", "multiplies in", "share of the peak",
        "share of the bandwidth", "machine", "commit",
    ]  # fmt: skip
    for row in rows:
        for own in row.get("roofline", ()):
            shares = [own["share_of_peak"], own["share_of_bandwidth"]]
            yield [
                own["kernel"], own["quant"], str(own["rows"]), str(row["threads"]), own["unit"],
                *("" if share is None else f"{share:.0%}" for share in shares), *_origin(row),
            ]  # fmt: skip


def gpu(rows: Iterable[Row]) -> Iterable[list[str]]:
    """Models on a GPU, compared with llama.cpp (Q4_0 for 4 bits, bfloat16 for float16)."""
    yield [
        "model", "scheme", "decode, batch 1", "share of a copy's bandwidth", "batch 8", "batch 64",
        "prompt of 2,048", "share of a matrix product", "card", "commit",
    ]  # fmt: skip
    for row in rows:
        if "ratio_gpu" in row:
            ratios = {name: f"{ratio:.2f}" for name, ratio in row["ratio_gpu"].items()}
            yield [
                row["shape"], row["quant"], ratios["decode_1"], f"{row['share_of_copy']:.0%}",
                ratios["decode_8"], ratios["decode_64"], ratios["prefill"],
                f"{row['share_of_product']:.0%}", row["card"]["gpu"], _origin(row)[1],
            ]  # fmt: skip


def server(rows: Iterable[Row]) -> Iterable[list[str]]:
    """The server, compared with llama-server."""
    yield ["model", "workload", "tokens/s, ratio", "first token, ratio", "machine", "commit"]
    for row in rows:
        if "ratio_tokens_per_second" in row:
            ratios = [row["ratio_tokens_per_second"], row["ratio_first_token"]]
            yield [row["shape"], row["what"], *(f"{r:.2f}" for r in ratios), *_origin(row)]


def browser(rows: Iterable[Row]) -> Iterable[list[str]]:
    """A page, compared with other engines in pages."""
    yield ["model", "scheme", "peer", "prefill, ratio", "decode, ratio", "machine", "commit"]
    for row in rows:
        if "ratio_prefill_wall_s" in row:
            ratios = [row["ratio_prefill_wall_s"], row["ratio_decode_wall_s"]]
            peer = row["what"].removeprefix("browser-")
            cells = [row["shape"], row["quant"], peer, *(f"{r:.2f}" for r in ratios)]
            yield [*cells, *_origin(row)]


def embeddings(rows: Iterable[Row]) -> Iterable[list[str]]:
    """Embeddings of short texts, compared with torch and ONNX Runtime in float32."""
    yield [
        "model", "scheme", "texts", "threads", "ratio to torch, CPU time",
        "ratio to ONNX Runtime, CPU time", "machine", "commit",
    ]  # fmt: skip
    for row in rows:
        if "ratio_onnxruntime_cpu" in row:
            ratios = [row["ratio_torch_cpu"], row["ratio_onnxruntime_cpu"]]
            cells = [row["shape"], row["quant"], str(row["texts"]), str(row["threads"])]
            yield [*cells, *(f"{r:.2f}" for r in ratios), *_origin(row)]


def arm_tiles(rows: Iterable[Row]) -> Iterable[list[str]]:
    """Prompts on Arm: matrix instructions (i8mm) over dot products, by llvm-mca, not measured."""
    cores = ("neoverse-n2", "neoverse-v1", "neoverse-v2", "cortex-a510", "apple-m1")
    yield ["kernel", "scheme", *cores, "commit"]
    for row in rows:
        if "ratio_i8mm" in row:
            ratios = (f"{row['ratio_i8mm'][core]:.2f}" for core in cores)
            yield [row["shape"], row["quant"], *ratios, _origin(row)[1]]


def features(rows: Iterable[Row]) -> Iterable[list[str]]:
    """The engine's features: times without over times with."""
    yield ["model", "feature", "speed-up", "machine", "commit"]
    for row in rows:
        if "ratio" in row:
            name = row["what"].removeprefix("engine-")
            yield [row["shape"], name, f"{row['ratio']:.2f}", *_origin(row)]


def _origin(row: Row) -> tuple[str, str]:
    """Return machine and commit of a row, with a mark for a busy machine."""
    cpu_name = row["machine"]["cpu"].partition(" (")[0]
    return cpu_name + (" (busy)" if row.get("warning") else ""), row["versions"]["commit"][:7]


def newest(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each shape, workload, number of threads and scheme."""
    kinds = {(r["shape"], r["what"], r["threads"], r["quant"]): r for r in rows}
    return [kinds[kind] for kind in sorted(kinds, key=str)]


def slower(rows: Iterable[Row]) -> list[str]:
    """Describe each ratio to a peer that is below 1, in the newest rows, as the tables have it."""
    lines = []
    for row in newest(rows):
        ratios = {RATIOS[n]: row[n] for n in RATIOS if isinstance(row.get(n), float)}
        ratios |= {name.replace("_", " "): r for name, r in row.get("ratio_gpu", {}).items()}
        where = f"{row['shape']} {row['quant']} {row['what']}"
        lines += [f"{where}, {name}: {r:.2f}" for name, r in ratios.items() if round(r, 2) < 1]
    return lines


def page(rows: list[Row]) -> str:
    """Return the whole page as Markdown."""
    behind = "".join(f"- {line}\n" for line in slower(rows))
    parts = [HEAD, f"Wherry takes longer than the peer here:\n\n{behind}"] if behind else [HEAD]
    titles = {
        cpu: "CPU",
        roofline: "Kernels on a CPU",
        gpu: "GPU",
        arm_tiles: "Arm's matrix instructions",
        embeddings: "Embeddings",
        server: "Server",
        browser: "Browser",
        features: "Features of the engine",
    }
    for section, title in titles.items():
        head, *cells = section(newest(rows))
        if not cells:
            continue
        table = [head, ["---"] * len(head), *cells]
        lines = "\n".join(f"| {' | '.join(line)} |" for line in table)
        parts.append(f"## {title}\n\n{section.__doc__}\n\n{lines}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(read_rows(ROWS)), end="")
