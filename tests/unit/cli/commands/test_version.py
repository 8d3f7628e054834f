"""`kafkapy version`."""

from kafkapy import __version__
from tests.harness.scripted.cli import kafkapy


def test_forms() -> None:
    assert kafkapy("version").stdout.startswith(f"kafkapy {__version__} (Kafka 3.9, Python 3.")
    (versions,) = kafkapy("version", "--output", "json").data
    assert (versions["kafkapy"], versions["kafka"]) == (__version__, "3.9")
    assert "Component" in kafkapy("version", terminal=True).stdout
