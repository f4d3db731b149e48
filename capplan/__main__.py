"""`python -m capplan` is the same program as `capplan`."""

from capplan.cli.app import main

main()
