"""`python -m trainyard` is the command `trainyard`."""

from trainyard.cli.main import run

run()
