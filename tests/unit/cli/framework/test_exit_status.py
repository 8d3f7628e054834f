"""Exit statuses are a promise to scripts."""

from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.common.errors import KafkapyError


def test_statuses_never_change() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {
        "SUCCESS": 0,
        "FAILURE": 1,
        "INTERRUPTED": 130,
    }


def test_both_errors_are_reported_not_raised_to_the_user() -> None:
    assert issubclass(UsageError, KafkapyError)
    assert issubclass(CommandFailed, KafkapyError)
