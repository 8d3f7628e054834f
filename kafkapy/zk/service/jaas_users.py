"""The users of a ZooKeeper server, from its section of a JAAS file."""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl import jaas_file

DIGEST_LOGIN: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
SECTION: Final = "Server"

_USER: Final = "user_"


def digest_users(path: str | None, section: str = SECTION) -> dict[str, str]:
    """Passwords by user in a section; empty without the file or the section.

    Raises:
        ConfigError: the file cannot be read, or the section has no user.
    """
    file = jaas_file.read(path) if path else None
    if file is None or section not in file.sections:
        return {}
    users = {
        name.removeprefix(_USER): password
        for module in file.sections[section]
        if module.name == DIGEST_LOGIN
        for name, password in module.options.items()
        if name.startswith(_USER)
    }
    if not users:
        raise ConfigError(
            f"{file.path}: the section {section}, for ZooKeeper's server, must have {DIGEST_LOGIN}"
            ' required user_NAME="PASSWORD";'
        )
    return users
