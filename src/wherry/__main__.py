"""`python -m wherry`."""

from wherry.cli import main

main()
