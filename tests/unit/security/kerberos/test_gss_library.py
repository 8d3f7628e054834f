"""Without the library there is one clear line. What it does with a realm: test_gssapi.py."""

from __future__ import annotations

import sys

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.kerberos.gss_library import Initiator, check_library
from kafkapy.security.kerberos.login import KerberosLogin


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError) as refused:
        check_library("key")
    assert str(refused.value).startswith(
        "key needs the package gssapi: pip install gssapi, which needs a C compiler and libkrb5-dev"
    )
    with pytest.raises(ConfigError, match="config for GSSAPI needs the package gssapi"):
        Initiator(KerberosLogin("sasl.jaas.config", "kafka", "a@R", "/k"))
