"""The files of a systemd service for a broker: the unit and its environment file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final, NamedTuple

NAME: Final = "kafkapy.service"
STOP_LIMIT_S: Final = 300
"""The time that systemd gives a broker to stop."""
_SYSTEM: Final = Path("/etc/systemd/system")
_SYSTEM_ENVIRONMENT: Final = Path("/etc/default/kafkapy")

_UNIT: Final = """\
# Written by kafkapy server install-service.
[Unit]
Description=Kafka broker (kafkapy)
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
EnvironmentFile=-{environment}
ExecStart={command}
{own}Restart=on-failure
RestartSec=2
# The recovery of large logs takes as long as it takes; so does handing over many leaders.
TimeoutStartSec=infinity
TimeoutStopSec={stop_limit_s}
KillMode=mixed
NoNewPrivileges=yes
ProtectSystem=full

[Install]
WantedBy={target}
"""
_ENVIRONMENT: Final = """\
# The environment of the broker, for example:
# KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/jaas.conf
"""


class ServiceFile(NamedTuple):
    """A file of the service."""

    path: Path
    text: str


def service_files(
    python: str,
    file: Path,
    processes: str | None,
    account: str | None,
    user_config: Path | None,
) -> list[ServiceFile]:
    """The environment file and the unit of the service that runs a broker with `file`.

    A system service that runs as `account`; with `user_config` (~/.config), a service of the user
    of that directory.
    """
    command = [python, "-P", "-m", "kafkapy.cli.main", "server", "start", str(file)]
    own = ""
    if processes is not None:
        command += ["--processes", processes]
        own = "ExecReload=/bin/kill -HUP $MAINPID\n"
    if account is not None:
        own = f"User={account}\n{own}"
    directory, environment = _SYSTEM, _SYSTEM_ENVIRONMENT
    if user_config is not None:
        directory, environment = user_config / "systemd" / "user", user_config / "kafkapy.env"
    unit = _UNIT.format(
        environment=_escaped(str(environment)),
        command=" ".join(_quoted(word) for word in command),
        own=own,
        stop_limit_s=STOP_LIMIT_S,
        target="default.target" if user_config is not None else "multi-user.target",
    )
    return [ServiceFile(environment, _ENVIRONMENT), ServiceFile(directory / NAME, unit)]


def next_commands(is_users: bool) -> list[str]:
    """The commands that start the written service."""
    systemctl = "systemctl --user" if is_users else "systemctl"
    return [f"{systemctl} daemon-reload", f"{systemctl} enable --now {NAME}"]


def _escaped(text: str) -> str:
    """Escape %, which begins a specifier in a unit."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """Quote a word of ExecStart. systemd reads quotes as a shell does, and expands $ and %. It also
    reads C's escapes within quotes.
    """
    for text, escape in (("\\", r"\\"), ("\n", r"\n"), ("\r", r"\r")):
        word = word.replace(text, escape)
    return shlex.quote(_escaped(word).replace("$", "$$"))
