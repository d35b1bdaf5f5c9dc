"""The command `wherry package`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from wherry.base.progress import shown
from wherry.errors import ToolchainError, UsageError
from wherry.packager.platforms import PLATFORMS, TARGETS, platforms_of

from . import columns, completion, options
from .quantities import size

_SITE = ("webgpu", "wasm")
SEQUENCES = 4  # of an app in one step: one user, and tools or titles besides


def _variants(
    targets: tuple[str, ...], quants: tuple[str, ...]
) -> Iterator[tuple[str, str | None]]:
    """Yield (target, scheme) pairs to compile for a site.

    WebAssembly gets one scheme, because CPU kernels run everywhere.
    """
    for target in targets:
        for quant in (quants[:1] if target == "wasm" else quants) or (None,):
            yield target, quant


@click.command("package")
@click.argument(
    "models",
    nargs=-1,
    required=True,
    metavar="MODEL...",
    type=options.MODEL,
    shell_complete=completion.models,
)
@click.option(
    "--target",
    "targets",
    type=click.Choice([*_SITE, *TARGETS]),
    metavar="T",
    multiple=True,
    default=["webgpu"],
    show_default=True,
    help="For a site: webgpu (the browser's GPU), wasm (its CPU), or both; the browser takes the "
    "GPU if it can. For an app: its systems, whose CPUs run the model: "
    f"{', '.join(PLATFORMS)}; and their GPUs, too: iphone:metal, android:opencl, "
    "android:vulkan. A load takes the first that works: metal, opencl, vulkan, cpu.",
)
@click.option(
    "-q",
    "--quant",
    "quants",
    metavar="SCHEME",
    multiple=True,
    help="Scheme of the weights, as in `wherry compile`. A browser takes the best of several that "
    "its GPU can run: q4f16_1 needs 16-bit floats, q4f32_1 runs on all. Apps have one.",
)
@click.option(
    "--cpu",
    metavar="NAME",
    help="The oldest CPU of an app's devices, by LLVM's name, as cortex-a76. Default: every device "
    "of the system; on 64-bit Arm there is also code with dot products for int8, which a load "
    "takes where the CPU has them.",
)
@click.option(
    "--grammar",
    is_flag=True,
    help="For an app: enforce response_format, grammars and strict tool calls. The library gets "
    "0.9 MB larger, for xgrammar's code.",
)
@options.limits
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder.")
def package_command(
    models: tuple[str, ...],
    targets: tuple[str, ...],
    quants: tuple[str, ...],
    cpu: str | None,
    grammar: bool,
    output: Path,
    **limits_given: int | None,
) -> None:
    """Write a chat site for browsers, or libraries for an app.

    A site is a folder for any web server: page, compiled models and weights. `wherry web DIR`
    shows it on this machine. Each --target is compiled with each --quant; a browser fetches the
    one that suits it. The output ends with the browsers that run none of them, and what to add.

    For an app: libraries with the core, TVM's run time and the models' code, headers, and weights
    and tokenizers as assets; for Linux and Android also wherry-lite, a program for terminals,
    boards and Termux. mobile/README.md says how to use them.

    Prints the folder, and on stderr its size and what to type next.
    """
    from wherry.compiler.api import Limits

    limits = Limits(**limits_given)
    apps = [target for target in targets if target not in _SITE]
    if apps and len(apps) < len(set(targets)):
        raise UsageError(
            f"A folder is a site ({', '.join(_SITE)}) or for apps ({', '.join(PLATFORMS)}); "
            f"--target has both: {', '.join(targets)}. Type the command once for each."
        )
    if apps:
        _package_app(models, apps, quants, cpu, output, limits, grammar=grammar)
    elif cpu:
        raise UsageError("--cpu is for apps: a browser's CPU is not known. Leave it out.")
    elif grammar:
        raise UsageError("--grammar is for apps: a site has structured output. Leave it out.")
    else:
        _package_site(models, targets, quants, output, limits)
    click.echo(output)


def _package_site(
    models: tuple[str, ...],
    targets: tuple[str, ...],
    quants: tuple[str, ...],
    output: Path,
    limits: object,
) -> None:
    from wherry.cache.entries import safe
    from wherry.compiler.api import Limits, ensure_artifact, name_of
    from wherry.web import site

    assert isinstance(limits, Limits)
    site.check_new(output)
    site.page_folder()
    folders: dict[str, Path] = {}
    with shown() as progress:
        for model in models:
            for target, quant in _variants(targets, quants):
                variant = target if len(quants) < 2 else f"{target}-{quant}"
                address = f"{site.MODELS}/{safe(name_of(model))}-{variant}/"
                folders[address] = ensure_artifact(
                    model,
                    target=target,
                    quant=quant,
                    limits=limits,
                    out=output / address,
                    progress=progress,
                )
    site.copy_page(output)
    listed = site.write_index(output, folders)
    for note in site.notes_on(folders):
        click.echo(note, err=True)
    for entry in listed:
        click.echo(f"{size(entry['bytes'])} of {entry['name']} for a visitor's browser", err=True)
    _end(output, shlex.join(["wherry", "web", str(output)]))


def _package_app(
    models: tuple[str, ...],
    targets: list[str],
    quants: tuple[str, ...],
    cpu: str | None,
    output: Path,
    limits: object,
    *,
    grammar: bool,
) -> None:
    from wherry.cache.entries import safe
    from wherry.compiler.api import Limits, ensure_artifact, name_of
    from wherry.packager import httplib, package, xgrammar

    assert isinstance(limits, Limits)
    if grammar and not (library := xgrammar.requirement()).installed:
        raise ToolchainError(f"--grammar takes {library.name}. Type: {library.fix}")
    if len(quants) > 1:
        raise UsageError(f"An app takes one --quant; found {', '.join(quants)}.")
    package.check_new(output)
    names = [safe(name_of(model)) for model in models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"Several models are called {', '.join(sorted(twice))}; an app takes one.")
    if limits.max_batch is None:
        limits = replace(limits, max_batch=SEQUENCES)
    devices_of = platforms_of(targets)
    platforms = [PLATFORMS[name] for name in devices_of]
    for platform in platforms:  # said before models are compiled, which takes minutes
        for needed in package.lacking(platform, set(devices_of[platform.name]) - {"cpu"}):
            click.echo(
                f"{needed.name} is not installed, so {platform.name} will lack its library: "
                f"what follows compiles the models alone. Ctrl-C, and type: {needed.fix}",
                err=True,
            )
    with shown() as progress:
        compiled = {
            name: {
                platform.name: {
                    device: ensure_artifact(
                        model,
                        target=platform.gpus.get(device) or (f"cpu:{cpu}" if cpu else platform.cpu),
                        host=platform.host,
                        quant=quants[0] if quants else None,
                        limits=limits,
                        progress=progress,
                    )
                    for device in devices_of[platform.name]
                }
                for platform in platforms
            }
            for name, model in zip(names, models, strict=True)
        }
        written = package.write_package(output, compiled, platforms, progress, grammar=grammar)
    for line in columns.lines(
        [(size(file.size), file.path) for file in (*written.libraries, *written.programs)],
        right={0},
    ):
        click.echo(line, err=True)
    if written.programs and not (server := httplib.requirement()).installed:
        click.echo(
            f"wherry-lite has no `serve`: that takes {server.name}. Type: {server.fix}", err=True
        )
    package.require_all(output, written)
    _end(output, *package.next_steps(output, written))


def _end(output: Path, *steps: str) -> None:
    """Say how large the folder is, and what comes next."""
    total = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    click.echo(f"{size(total)} in all, in {output}", err=True)
    for step in steps:
        click.echo(f"Next: {step}", err=True)
