"""The `wherry` command. Results go to stdout, everything else to stderr.

It imports little, so that Ctrl-C works from the beginning.
"""

from __future__ import annotations

from . import interrupts, no_torch


def main() -> None:
    """Entry point; ends with one of the exit codes of `group.EXIT_CODES`."""
    interrupts.exit_at_once()
    no_torch.hide()
    from .group import run

    run()
