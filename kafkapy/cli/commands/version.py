"""`kafkapy version`."""

from __future__ import annotations

import platform
from typing import Final

from kafkapy import __version__
from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import CommonOptions
from kafkapy.cli.framework.output import Report, Table, show

# The version of Kafka whose wire, disk and text formats are used.
KAFKA_VERSION: Final = "3.9"


def run(options: CommonOptions, env: Environment) -> ExitStatus:
    """Print versions."""
    versions = {
        "kafkapy": __version__,
        "kafka": KAFKA_VERSION,
        "python": platform.python_version(),
    }
    report = Report(
        "version",
        [versions],
        [f"kafkapy {__version__} (Kafka {KAFKA_VERSION}, Python {versions['python']})"],
        [Table(("Component", "Version"), list(versions.items()))],
    )
    show(env, report, options.output)
    return ExitStatus.SUCCESS


COMMAND: Final = Command(
    "version",
    CommonOptions,
    run,
    bare=True,
    examples={
        "Print the versions.": "",
        "Print them as JSON, for a bug report.": "--output json",
    },
)
