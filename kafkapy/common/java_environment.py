"""Environment variables with which Kafka's scripts configure a JVM, and their effect here.

`KAFKA_OPTS` names the JAAS file (`jaas_file`). The others have no effect, because there is no JVM.
An adapter: it reads the environment of this process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

LOGIN_CONFIG: Final = "kafkapy.java.security.auth.login.config"
ZOOKEEPER_SECTION: Final = "kafkapy.zookeeper.sasl.clientconfig"
"""The property that names the JAAS section for ZooKeeper. The default is `Client`; an empty value
disables SASL."""

ZOOKEEPER_SERVER_SECTION: Final = "zookeeper.sasl.serverconfig"
"""The Java property that names the JAAS section of a ZooKeeper server. The default is `Server`."""

_OPTS: Final = "KAFKA_OPTS"
_FILE: Final = "java.security.auth.login.config"
_SECTION: Final = "zookeeper.sasl.clientconfig"
_SASL: Final = "zookeeper.sasl.client"
_KERBEROS: Final = "java.security.krb5.conf"
_EFFECTIVE_PROPERTIES: Final = (_FILE, _SECTION, ZOOKEEPER_SERVER_SECTION, _SASL, _KERBEROS)
_JAVA_PREFIXES: Final = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "log4j", "zookeeper.")
JVM_VARIABLES: Final = ("KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", _OPTS)
"""Variables with options of the JVM's command line, in the order of Kafka's script."""
_IGNORED_VARIABLES: Final = ("KAFKA_GC_LOG_OPTS", "KAFKA_JMX_OPTS", "KAFKA_LOG4J_OPTS", "JMX_PORT")


def system_properties(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Properties set by `-Dname=value` in KAFKA_OPTS, and a JVM's own that JAAS files use."""
    found = {"user.home": os.path.expanduser("~"), "/": os.sep, "file.separator": os.sep}
    for word in environ.get(_OPTS, "").split():
        if word.startswith("-D"):
            name, _, value = word[2:].partition("=")
            found[name] = value
    return found


def with_login_config(
    properties: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The properties of a process, with the JAAS settings of KAFKA_OPTS that they lack."""
    java, found = system_properties(environ), {}
    if _FILE in java:
        found[LOGIN_CONFIG] = java[_FILE]
    if _SECTION in java:
        found[ZOOKEEPER_SECTION] = java[_SECTION]
    if java.get(_SASL, "").lower() == "false":
        found[ZOOKEEPER_SECTION] = ""
    return found | dict(properties)


def apply_kerberos_config() -> None:
    """Set the krb5.conf of KAFKA_OPTS for the Kerberos library of this process."""
    file = system_properties().get(_KERBEROS)
    if file:
        os.environ.setdefault("KRB5_CONFIG", file)


def without_effect(environ: Mapping[str, str], *, starts_jvm: bool = False) -> str:
    """One line that names the settings without effect; empty if all have an effect. Values may be
    secret and are left out."""
    names = [name for name in JVM_VARIABLES[:2] if environ.get(name) and not starts_jvm]
    names += [name for name in _IGNORED_VARIABLES if environ.get(name)]
    if not starts_jvm:
        for word in environ.get(_OPTS, "").split():
            name = word.partition("=")[0]
            # The JAAS file may use other properties, as ${name}.
            is_java_option = not name.startswith("-D") or name[2:].startswith(_JAVA_PREFIXES)
            if is_java_option and name[2:] not in _EFFECTIVE_PROPERTIES:
                names.append(f"{name.partition(':')[0]} in {_OPTS}")
    if not names:
        return ""
    reason = "ZooKeeper's logging is set" if starts_jvm else "there is no JVM"
    return f"Without effect, because {reason} here: {', '.join(dict.fromkeys(names))}"
