"""`python -m vseg` is the `vseg` command."""

from vseg.cli import main

main()
