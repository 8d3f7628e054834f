"""Options as fields: what is given, what is required, what excludes what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    check_host_ports,
    flag,
    is_given,
    option_name,
    properties_of,
    refuse,
    refuse_other_actions,
    require,
    single_verb,
    value,
    values,
)
from kafkapy.common.errors import ConfigError


@dataclass
class Some(ClusterOptions):
    loud: bool = flag("Loud.")
    list_: bool = flag("List.")
    top_most: str | None = value("Top.")
    many: list[str] = values("Many.")


def test_the_files_of_a_client_may_have_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    common, file = tmp_path / "common.properties", tmp_path / "client.properties"
    common.write_text(
        "config.providers=env\nconfig.providers.env.class="
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    file.write_text("ssl.key.password=${env:PASSWORD}\n")
    assert properties_of(str(common), None, str(file)) == {"ssl.key.password": "secret"}


def test_what_counts_as_given() -> None:
    assert not any(is_given(Some(), name) for name in ("loud", "top_most", "many"))
    given = Some(loud=True, top_most="", many=["x"])
    assert all(is_given(given, name) for name in ("loud", "top_most", "many"))


def test_names_on_the_command_line() -> None:
    assert [option_name(name) for name in ("top_most", "list_")] == ["top-most", "list"]


def test_one_verb() -> None:
    assert single_verb(["list"], ["abort", "list"]) == "list"
    with pytest.raises(UsageError, match=r"invalid choice: '' \(choose from abort, list\)"):
        single_verb([], ["abort", "list"])
    with pytest.raises(UsageError, match="unrecognized arguments: 'all now'"):
        single_verb(["abort", "all", "now"], ["abort", "list"])


def test_required() -> None:
    require(Some(top_most="x"), "top_most")
    with pytest.raises(UsageError, match=r'Missing required argument "\[top-most\]"'):
        require(Some(), "top_most")


def test_refused_together() -> None:
    refuse(Some(loud=True), "loud", "top_most")
    refuse(Some(top_most="x"), "loud", "top_most")
    said = r'Option "\[list\]" can\'t be used with option "\[loud\]"'
    with pytest.raises(UsageError, match=said):
        refuse(Some(list_=True, loud=True), "list_", "many", "loud")


@dataclass
class Actions(ClusterOptions):
    fast: bool = flag("be fast.", actions=("start",))
    limit: int = value("the limit.", actions=("start", "stop"), default=5)
    paths: list[str] = values("paths.", actions=("stop",))


def test_an_option_that_an_action_would_ignore_is_refused() -> None:
    refuse_other_actions(Actions(), "list")
    refuse_other_actions(Actions(fast=True, limit=6), "start")
    refuse_other_actions(Actions(limit=6, paths=["a"]), "stop")
    for options, action, name in (
        (Actions(fast=True), "stop", "fast"),
        (Actions(limit=6), "list", "limit"),
        (Actions(paths=["a"]), "start", "paths"),
    ):
        with pytest.raises(UsageError, match=rf'"\[{name}\]" can\'t be used with "{action}"'):
            refuse_other_actions(options, action)


# Java's `split` drops empty texts at the end, so a script may end each server with a comma.
@pytest.mark.parametrize(
    "good", [None, "h:1", "h:1,PLAINTEXT://x:2", "[::1]:9092", "1.2.3.4:5", "h:1,x:2,"]
)
def test_host_ports(good: str | None) -> None:
    check_host_ports(good)


@pytest.mark.parametrize("bad", ["", ",", "h", "h:", "h:x", "h:1,,x:2", "h:1, x:2"])
def test_bad_host_ports(bad: str) -> None:
    with pytest.raises(UsageError, match="host1:9091,host2:9092"):
        check_host_ports(bad)


def test_connect_reads_the_property_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\nrequest.timeout.ms=7\n")
    options = Some(bootstrap_server="b:1", command_config=str(file))
    cluster = options.connect(Environment())
    assert (cluster.client_id, cluster.request_timeout_ms) == ("me", 7)
    with pytest.raises(UsageError, match="bootstrap-server"):
        Some().connect(Environment())
    with pytest.raises(ConfigError, match="Cannot read /nope"):
        Some(bootstrap_server="b:1", command_config="/nope").connect(Environment())
