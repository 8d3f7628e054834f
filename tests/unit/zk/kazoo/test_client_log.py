"""The log of the ZooKeeper client has no secrets, at any level."""

from __future__ import annotations

from binascii import hexlify

import pytest
from kazoo.loggingsupport import BLATHER
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import ZnodeStat

from kafkapy.zk.kazoo.client_log import client_logger

STAT = ZnodeStat(*range(11))
SECRET = b"S3cret"


@pytest.mark.parametrize(
    ("message", "argument", "logged"),
    [
        ("Sending request(xid=%s): %s", wire.Auth(0, "digest", "kafka:S3cret"), "7): Auth"),
        ("Sending request(xid=%s): %s", wire.SetData("/u", SECRET, -1), "7): SetData of /u"),
        ("Received response(xid=%s): %r", (SECRET, STAT), "7): 'tuple'"),
        ("Received response(xid=%s): %r", ["alice", "bob"], "7): 'list'"),
        ("Received response(xid=%s): %r", "/created", "7): '/created'"),
        ("Session %s: session_passwd: %s", hexlify(SECRET), "7: session_passwd: bytes"),
        ("Read response %s %s", wire.Connect(0, 0, 1, 2, SECRET, False), "7 Connect"),
    ],
)
def test_a_password_in_a_request_or_a_reply_is_not_logged(
    message: str, argument: object, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    logger = client_logger()
    with caplog.at_level(BLATHER, logger.name):
        logger.log(BLATHER, message, 7, argument)
    assert caplog.messages[0].endswith(logged)
    assert "S3cret" not in caplog.text
