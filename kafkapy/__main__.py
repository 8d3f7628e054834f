"""`python -m kafkapy`: the command line, for use if the script `kafkapy` is not on the PATH."""

from __future__ import annotations

from kafkapy.cli.main import main

main()
