"""Runs the command line as `python -m wherry`."""

from wherry.cli import main

main()
