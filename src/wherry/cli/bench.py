"""The command `wherry bench`, a load test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from wherry.base.progress import shown
from wherry.errors import UsageError, WherryError

from . import options

if TYPE_CHECKING:
    from wherry.bench.measure import BenchTarget, LoadPlan, Measured
    from wherry.runtime.load.options import LoadOptions

_FILE = click.Path(dir_okay=False, path_type=Path)
_POSITIVE = click.FloatRange(0, min_open=True)
_workload = options.stack(
    click.option("--concurrency", type=click.IntRange(1), help="Concurrent requests; default: 1."),
    click.option(
        "--rate",
        type=_POSITIVE,
        help="Requests per second, at random times (a Poisson process), instead of --concurrency.",
    ),
    click.option(
        "--trace",
        type=_FILE,
        help="Requests and times of FILE, instead of --concurrency: JSON lines, Mooncake's or "
        '{"at": 0.5, "prompt_tokens": 128, "max_tokens": 64}.',
    ),
    click.option(
        "--speed",
        type=_POSITIVE,
        default=1.0,
        show_default=True,
        help="Speed of --trace; 2: twice as fast.",
    ),
    click.option(
        "--requests",
        type=click.IntRange(1),
        help="Measured requests; default: 32, or the whole trace.",
    ),
    click.option(
        "--duration", type=_POSITIVE, metavar="SECONDS", help="Start no request after this time."
    ),
    click.option(
        "--prompt-tokens",
        default="128",
        show_default=True,
        metavar="N|N-M",
        help="Tokens of each prompt.",
    ),
    click.option(
        "--output-tokens",
        default="64",
        show_default=True,
        metavar="N|N-M",
        help="Tokens of each answer.",
    ),
    click.option(
        "--may-stop", is_flag=True, help="Let the model end answers before --output-tokens."
    ),
    click.option(
        "--endpoint",
        type=click.Choice(["chat", "completions"]),
        default="chat",
        show_default=True,
        help="Which kind of request to send.",
    ),
    click.option(
        "--warmup",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="Requests before the measured ones.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of prompts and times."
    ),
)


@click.command("bench")
@click.argument("model", required=False)
@click.option("--url", help="A server of OpenAI's API: http://127.0.0.1:8000.")
@click.option("--api-key", help="The server's key; default: WHERRY_API_KEY.")
@click.option(
    "--timeout",
    type=_POSITIVE,
    default=600.0,
    show_default=True,
    help="Time limit of a request in seconds.",
)
@_workload
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every request.")
@click.option("--plot", type=_FILE, metavar="FILE.svg", help="Also write a picture.")
@click.option("--max-batch", type=click.IntRange(1), help="Requests that MODEL decodes together.")
@options.load
@click.pass_context
def bench_command(
    ctx: click.Context,
    /,
    model: str | None,
    url: str | None,
    api_key: str | None,
    timeout: float,
    as_json: bool,
    plot: Path | None,
    **typed: Any,
) -> None:
    """Measure throughput and latency of MODEL, or of a server.

    MODEL runs in this process. With --url it is a name at a server; default: the first name in
    the server's list. Prompts are random words, sized by the server's own token counts. TTFT and
    E2E count from when a request was due. The exit code is 1 if every request failed.
    """
    loading, fields = options.split(typed)
    plan = _plan(fields)
    if plot and plot.suffix.lower() != ".svg":
        raise UsageError(f"{plot} is not an .svg file. Type: --plot {plot.with_suffix('.svg')}")
    if url is not None:
        _no_load_options(ctx, loading)
        target, measured = asyncio.run(_server(url, model, api_key, timeout, plan))
    elif model is not None:
        target, measured = _engine(model, loading, plan)
    else:
        raise UsageError("There is nothing to measure. Type: wherry bench MODEL, or --url URL")
    _show(target, plan, measured, as_json, plot)


def _plan(fields: Mapping[str, Any]) -> LoadPlan:
    from wherry.bench.measure import LoadPlan
    from wherry.bench.workload import Lengths

    given = dict(fields)
    given["chat"] = given.pop("endpoint") == "chat"
    given["seconds"] = given.pop("duration", None)
    for name in ("prompt_tokens", "output_tokens"):
        given[name] = Lengths.parse(given[name])
    return LoadPlan(**given)


def _no_load_options(ctx: click.Context, loading: LoadOptions) -> None:
    """Reject options for a model in this process if the target is a server."""
    typed = [
        f"--{name.replace('_', '-')}"
        for name in loading
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if typed:
        raise UsageError(f"{', '.join(sorted(typed))}: with --url the server has chosen that.")


async def _server(
    url: str, model: str | None, api_key: str | None, timeout: float, plan: LoadPlan
) -> tuple[str, Measured]:
    from wherry.base import settings
    from wherry.bench.connection import TargetAddress
    from wherry.bench.http_target import HttpTarget

    key = api_key or settings.api_key()
    target = HttpTarget(TargetAddress.parse(url), model or "", key, timeout)
    if model is None:
        listed = await target.models()
        if not listed:
            raise UsageError(f"{target.name} lists no model. Type its name: wherry bench MODEL")
        target.model = listed[0]
    return await _measured(target, plan)


def _engine(model: str, loading: LoadOptions, plan: LoadPlan) -> tuple[str, Measured]:
    from wherry.bench.engine_target import EngineTarget
    from wherry.runtime import AsyncMLCEngine

    with shown() as progress:
        engine = AsyncMLCEngine(model, **(loading | {"progress": progress}))
    try:
        return asyncio.run(_measured(EngineTarget(engine, model), plan))
    finally:
        engine.loaded.close()


async def _measured(target: BenchTarget, plan: LoadPlan) -> tuple[str, Measured]:
    from wherry.bench.measure import measure

    try:
        with shown() as progress:
            return target.name, await measure(target, plan, progress)
    finally:
        await target.close()


def _show(
    target: str, plan: LoadPlan, measured: Measured, as_json: bool, plot: Path | None
) -> None:
    from wherry.base.temporary import write_atomically
    from wherry.bench import picture, report, table

    title = f"{target}: {plan}"
    summary = report.summary(measured.outcomes)
    if plot:
        write_atomically(plot, picture.svg(title, measured.outcomes))
    if as_json:
        header = {"target": target, "workload": plan.record(), "exact_lengths": measured.exact}
        begin = min((o.due for o in measured.outcomes), default=0.0)
        rows = [report.record(o, begin) for o in measured.outcomes]
        click.echo(json.dumps(header | summary | {"each": rows}))
    else:
        for line in table.lines(title, summary):
            click.echo(line)
        if not measured.exact and not plan.may_stop:
            click.echo("The server has no ignore_eos: answers may be shorter than requested.")
    if summary["failed"] == summary["requests"]:
        raise WherryError("Every request failed; the reasons are above.")
