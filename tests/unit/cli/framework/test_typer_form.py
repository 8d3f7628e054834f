"""The command line through Typer's CliRunner: what a user's own tests call."""

from __future__ import annotations

import io

from typer.testing import CliRunner

from kafkapy import __version__
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.typer_form import app
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster


def test_it_is_the_same_command_line() -> None:
    for words in (["--version"], [], ["topics", "--help"], ["topics", "--nope"], ["topic"]):
        done, expected = CliRunner().invoke(app, words), kafkapy(*words)
        assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr)
        assert done.exit_code == expected.status


def test_all_words_get_there_as_they_are() -> None:
    words = ["completion", "install", "-shell=csh", "--", "--output", "json"]
    done = CliRunner().invoke(app, words)
    assert done.stderr.startswith("Found non argument parameters: --output,json\n")
    assert CliRunner().invoke(app, "--version").stdout == f"{__version__}\n"


def test_an_environment_leads_to_other_brokers() -> None:
    cluster = ScriptedCluster({})
    cluster.refuse = {1}
    words = ["topics", "--list", "--bootstrap-server", "b:1"]
    said = io.StringIO()
    env = Environment(stderr=said, connector=cluster.connect)
    assert CliRunner().invoke(app, words, obj=env).exit_code == 1
    assert "b:1 could not be established: Connection refused" in said.getvalue()
