"""The `wherry` command. Results go to stdout, everything else to stderr.

This module imports little, so that Ctrl-C works from the beginning.
"""

from __future__ import annotations

from . import interrupts, no_torch


def main() -> None:
    """Run the command line; exit with one of the codes in `group.EXIT_CODES`."""
    interrupts.exit_at_once()
    no_torch.hide()
    from .group import run

    run()
