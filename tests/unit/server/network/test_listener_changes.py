"""Changes of listeners are all made or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.listeners import Listener
from kafkapy.server.network.listener_changes import ListenerChanges
from kafkapy.server.security.listener_tls import ListenerTls
from tests.harness.security.certificates import can_make, make_identity


def test_of_two_listeners_neither_changes_when_one_cannot(tmp_path: Path) -> None:
    if not can_make("stores of several listeners"):
        return
    (tmp_path / "new").mkdir()
    old, new = make_identity(tmp_path, "broker"), make_identity(tmp_path / "new", "broker")
    static = {"ssl.keystore.location": str(old)}
    both = [ListenerTls(Listener(name, "h", 0, "SSL"), static) for name in ("X", "Y")]
    changes = ListenerChanges(["X", "Y"], dict(zip("XY", both, strict=True)))
    x, y = ({**static, f"listener.name.{n}.ssl.keystore.location": str(new)} for n in ("x", "y"))
    contexts = [tls.accept_context() for tls in both]
    with pytest.raises(ConfigError, match="listener Y"):
        changes.prepare(static, {**x, "listener.name.y.ssl.keystore.location": "/none.pem"})
    replace = changes.prepare(static, x | y)
    assert [tls.accept_context() for tls in both] == contexts
    replace()
    assert all(tls.accept_context() is not was for tls, was in zip(both, contexts, strict=True))


def test_at_the_start_there_is_nothing_to_compare_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The stores of server.properties may be those of years ago."""
    if not can_make("stores of a restarted broker"):
        return
    (tmp_path / "new").mkdir()
    old, new = make_identity(tmp_path, "broker"), make_identity(tmp_path / "new", "renamed")
    static = {"ssl.keystore.location": str(old), "ssl.truststore.location": str(old)}
    tls = ListenerTls(Listener("X", "h", 0, "SSL"), static, "required", connects=True)
    changes, key = ListenerChanges(["X"], {"X": tls}), "listener.name.x.ssl.{}.location"
    configs = {**static, key.format("keystore"): str(new), key.format("truststore"): str(new)}
    first = tls.accept_context()
    changes.load_stored({**static, key.format("keystore"): "/none.pem"})
    assert tls.accept_context() is first
    assert "/none.pem cannot be used: No such file" in caplog.text
    changes.load_stored(configs)
    second = tls.accept_context()
    assert second is not first
    changes.prepare(configs, configs)()
    assert tls.accept_context() is second


def test_what_a_listener_keeps_until_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """It is accepted, as by Kafka; who reads the log learns that it is not in force."""
    changes = ListenerChanges(["X"])
    key = "listener.name.x.ssl.client.auth"
    for before, after in (({}, {key: "required"}), ({key: "none"}, {})):
        change = changes.prepare(before, after)
        assert caplog.messages == []
        change()
        assert caplog.messages == [f"Listener X keeps what it has until the broker restarts: {key}"]
        caplog.clear()
    other = {key: "none", "listener.name.y.ssl.client.auth": "required"}
    changes.prepare({key: "none"}, other)()
    assert caplog.messages == []
    late = ("sasl.mechanism.inter.broker.protocol", "ssl.cipher.suites", "principal.builder.class")
    changes.prepare({}, dict.fromkeys(late, "x"))()
    assert caplog.messages == [
        "Only listeners that are added have these before the broker restarts: "
        "sasl.mechanism.inter.broker.protocol, ssl.cipher.suites"
    ]
    with pytest.raises(ConfigError, match=f"existing listener X, restart broker.*: {key}$"):
        changes.prepare({}, {key: "required", "sasl.enabled.mechanisms": "PLAIN"})


def test_a_value_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value often .* connections\.max\.reauth\.ms"):
        ListenerChanges(["X"]).prepare({}, {"listener.name.x.connections.max.reauth.ms": "often"})
