"""Users of a ZooKeeper server in a JAAS file; its settings are in test_server_security.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.zk.service.jaas_users import DIGEST_LOGIN, digest_users


def test_users_are_options_of_the_login_module(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f'Server {{ {DIGEST_LOGIN} required user_kafka="secret" debug="true"; }};')
    assert digest_users(str(file)) == {"kafka": "secret"}
    assert digest_users(str(file), "Other") == {}
    assert digest_users(None) == {}


def test_a_section_without_users_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text("Server { com.sun.security.auth.module.Krb5LoginModule required; };")
    with pytest.raises(ConfigError, match=f"{file}: the section Server"):
        digest_users(str(file))
