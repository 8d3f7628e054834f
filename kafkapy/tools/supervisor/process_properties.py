"""The properties of each broker of a machine, derived from one `server.properties`.

Broker 0 has the properties of the file, so a machine can change from one broker to many and back.
Broker N has these properties:

    broker.id              100 * N more; if the file has none, its own generated id
    listeners              ports that are 10 * N higher; 0 stays 0
    advertised.listeners   the same, if the file has them
    log.dirs               each with -N behind its name
    kafkapy.log.dir        the same, if the file has it
    zookeeper.connect      if the file has none, the store of broker 0
    kafkapy.zookeeper.listen   none, if the file has it: only broker 0 serves its store

`broker.rack` of all brokers is the machine's name unless the file sets it. So the replicas of a
partition are on different machines if the cluster has enough machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kafkapy.client.properties import int_property
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG
from kafkapy.tools.local import broker_processes
from kafkapy.zk.service.jaas_users import digest_users

PROCESSES_MAX: Final = 128
ID_STEP: Final = 100
PORT_STEP: Final = 10
LISTEN: Final = "kafkapy.zookeeper.listen"
_LISTENERS_DEFAULT: Final = "PLAINTEXT://:9092"
_RESERVED_ID_DEFAULT: Final = 1000
_PORT: Final = re.compile(r":(\d{1,9})\d*$")  # no port has more digits, and `int` refuses thousands


def log_dirs(properties: Mapping[str, str], number: int) -> list[str]:
    """The log directories of broker `number`."""
    return [_directory(each, number) for each in broker_processes.log_dirs(properties)]


def overrides(
    properties: Mapping[str, str], number: int, machine: str, store: str
) -> dict[str, str]:
    """The properties of broker `number` that differ from the file. `store` is the address at
    which broker 0 serves its embedded store if the cluster has no ZooKeeper.

    Raises:
        ConfigError: a value that must be a number is not one.
    """
    found = {"log.dirs": ",".join(log_dirs(properties, number))}
    if not properties.get("broker.rack"):
        found["broker.rack"] = machine
    if properties.get("kafkapy.log.dir"):
        found["kafkapy.log.dir"] = _directory(properties["kafkapy.log.dir"], number)
    if not properties.get("zookeeper.connect"):
        found[LISTEN if number == 0 else "zookeeper.connect"] = store
    if number == 0:
        return found
    if properties.get(LISTEN):
        found[LISTEN] = ""  # that of broker 0
    for key in ("broker.id", "node.id"):
        broker_id = int_property(properties, key, -1)
        if broker_id >= 0:
            found[key] = str(broker_id + ID_STEP * number)
            highest = int_property(properties, "reserved.broker.max.id", _RESERVED_ID_DEFAULT)
            if int(found[key]) > highest:
                found["reserved.broker.max.id"] = found[key]
    found["listeners"] = _listeners(properties.get("listeners") or _LISTENERS_DEFAULT, number)
    if properties.get("advertised.listeners"):
        found["advertised.listeners"] = _listeners(properties["advertised.listeners"], number)
    return found


def check(properties: Mapping[str, str], processes: int) -> None:
    """
    Raises:
        ConfigError: the properties do not allow `processes` brokers.
    """
    if not 1 <= processes <= PROCESSES_MAX:
        raise ConfigError(f"--processes must be 1 to {PROCESSES_MAX}, not {processes}")
    owners: dict[int, int] = {}
    for number in range(processes):
        text = properties.get("listeners") or _LISTENERS_DEFAULT
        for port in map(_port, comma_separated(_listeners(text, number))):
            if port > 65535:
                raise ConfigError(f"Broker {number} would have the port {port}, which is none")
            if port and owners.setdefault(port, number) != number:
                raise ConfigError(
                    f"Brokers {owners[port]} and {number} would both listen on port {port}: give"
                    f" the listeners ports that differ by no multiple of {PORT_STEP}"
                )


def check_store(properties: Mapping[str, str]) -> None:
    """Refuse to serve the store of secured brokers without logins. Every user of the machine can
    connect to it, even though only one can read its file.

    Raises:
        ConfigError: the brokers have an authorizer or a secured listener, and no ZooKeeper, no
            address for the store and no logins for it.
    """
    protocols = (properties.get(key, "") for key in ("listeners", "listener.security.protocol.map"))
    is_secured = properties.get("authorizer.class.name") or re.search("SSL|SASL", str([*protocols]))
    if not is_secured or properties.get("zookeeper.connect") or properties.get(LISTEN):
        return
    if not digest_users(properties.get(LOGIN_CONFIG)):
        raise ConfigError(
            "--processes serves the store of the first broker on loopback, where every user of this"
            " machine could read the credentials and change the ACLs of these secured brokers: name"
            " a JAAS file with the sections Server and Client in KAFKA_OPTS, or set"
            " zookeeper.connect"
        )


def _directory(name: str, number: int) -> str:
    return f"{name.rstrip('/')}-{number}" if number else name


def _listeners(text: str, number: int) -> str:
    return ",".join(
        _PORT.sub(lambda found: f":{_shift_port(int(found[1]), number)}", each)
        for each in comma_separated(text)
    )


def _shift_port(port: int, number: int) -> int:
    return port + PORT_STEP * number if port else 0


def _port(listener: str) -> int:
    found = _PORT.search(listener)
    return int(found[1]) if found else 0
