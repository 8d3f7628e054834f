"""The unit of systemd says what is run, as whom, and what it may do."""

from __future__ import annotations

import configparser
from pathlib import Path

from kafkapy.tools.local.service_files import next_commands, service_files

FILE = Path("/etc/kafka/server.properties")


def parsed(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def test_a_service_of_the_machine() -> None:
    environment, unit = service_files("/opt/kafkapy/bin/python", FILE, None, "kafka", None)
    assert (str(environment.path), str(unit.path)) == (
        "/etc/default/kafkapy",
        "/etc/systemd/system/kafkapy.service",
    )
    found = parsed(unit.text)
    service = found["Service"]
    assert service["Type"] == "notify"
    assert service["User"] == "kafka"
    assert service["EnvironmentFile"] == "-/etc/default/kafkapy"
    assert service["ExecStart"] == (
        "/opt/kafkapy/bin/python -P -m kafkapy.cli.main server start /etc/kafka/server.properties"
    )
    assert "ExecReload" not in service
    assert found["Install"]["WantedBy"] == "multi-user.target"
    assert next_commands(False)[1] == "systemctl enable --now kafkapy.service"


def test_a_service_of_a_user_with_many_brokers() -> None:
    environment, unit = service_files(
        "/home/u/my 100%/python", FILE, "auto", None, Path("/home/u/.config")
    )
    assert str(environment.path) == "/home/u/.config/kafkapy.env"
    assert str(unit.path) == "/home/u/.config/systemd/user/kafkapy.service"
    service = parsed(unit.text)["Service"]
    assert "User" not in service
    assert service["ExecStart"].startswith("'/home/u/my 100%%/python' -P")
    assert service["ExecStart"].endswith("--processes auto")
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert parsed(unit.text)["Install"]["WantedBy"] == "default.target"
    assert next_commands(True)[0] == "systemctl --user daemon-reload"


def test_the_name_of_a_file_adds_no_line_to_the_unit() -> None:
    file = Path("/srv/a\\b\nExecStartPre=/bin/sh")
    _, unit = service_files("/bin/python", file, None, "kafka", None)
    service = parsed(unit.text)["Service"]
    assert "ExecStartPre" not in service
    # systemd reads C's escapes in quotes too.
    assert service["ExecStart"].endswith(r"start '/srv/a\\b\nExecStartPre=/bin/sh'")
