"""Brokers with delegation tokens, ours and Apache Kafka's with the same settings, and the configs
of clients that log in as users or by tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kafkapy.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.protocol.schema import Message
from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.security.guarded_broker import AUTHORIZER
from tests.harness.security.secure_broker import PLAIN_LOGIN, SCRAM_LOGIN

USERS: Final = ("admin", "alice", "bob", "carol", "dave")
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
REFUSED: Final = "due to invalid credentials with SASL mechanism SCRAM-SHA-"


def settings(overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """PLAINTEXT for brokers and super users, SASL_PLAINTEXT for users and tokens; the ports are in
    `listeners`."""
    users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    sasl = "listener.name.sasl_plaintext"
    listeners = [f"{name}://127.0.0.1:{free_port()}" for name in ("PLAINTEXT", "SASL_PLAINTEXT")]
    return {
        "listeners": ",".join(listeners),
        "sasl.enabled.mechanisms": f"PLAIN,{','.join(MECHANISMS)}",
        f"{sasl}.plain.sasl.jaas.config": f"{PLAIN_LOGIN} {users};",
        **{f"{sasl}.{each.lower()}.sasl.jaas.config": f"{SCRAM_LOGIN};" for each in MECHANISMS},
        "delegation.token.secret.key": "what-hmacs-are-made-with",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        "connection.failed.authentication.delay.ms": "10",
        **(overrides or {}),
    }


def ours(directory: Path, zookeeper: str = "", **overrides: str) -> BrokerProcess:
    """A kafkapy broker; with an embedded store unless `zookeeper` is given."""
    more = {"zookeeper.connect": zookeeper} if zookeeper else {}
    return _at(BrokerProcess(directory, settings({**more, **overrides})))


def apache(
    directory: Path, zookeeper: ServerProcess, **overrides: str
) -> apache_kafka.ApacheBroker:
    """A broker of Apache Kafka with the same settings."""
    return _at(apache_kafka.ApacheBroker(directory, settings(overrides), zookeeper))


def _at(broker: Any) -> Any:
    plain = broker.properties["listeners"].split(",")[0]
    broker.bootstrap_servers = plain.removeprefix("PLAINTEXT://")
    broker.port = int(plain.rsplit(":", 1)[1])
    return broker


def servers(broker: Any) -> str:
    """The address at which users and tokens log in."""
    listeners: str = broker.properties["listeners"]
    return listeners.rpartition("://")[2]


def login(user: str) -> dict[str, str]:
    """A user's client properties, with Java's names."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_LOGIN} username="{user}" password="{user}-secret";',
    }


def token_login(token_id: str, hmac: bytes, mechanism: str = MECHANISMS[0]) -> dict[str, str]:
    """The client properties for a token."""
    password = base64.b64encode(hmac).decode()
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM_LOGIN} username="{token_id}" password="{password}"'
        ' tokenauth="true";',
    }


def as_user(broker: Any, user: str) -> Cluster:
    """A client of ours, logged in by PLAIN."""
    return Cluster(servers(broker), login(user))


def by_token(broker: Any, token: Any, mechanism: str = MECHANISMS[0]) -> Cluster:
    """A client of ours, logged in by the token of a CreateDelegationToken response."""
    return Cluster(servers(broker), token_login(token.token_id, token.hmac, mechanism))


def creation(
    *renewers: str, owner: str | None = None, max_lifetime_ms: int = -1, kind: str = "User"
) -> CreateDelegationTokenRequest:
    """A request for a token; owner and renewers are of one kind."""
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else kind,
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=r) for r in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )


def description(*owners: str) -> DescribeDelegationTokenRequest:
    """A request for the tokens of users, or for all."""
    wanted = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=owner)
        for owner in owners
    ]
    return DescribeDelegationTokenRequest(owners=wanted or None)


def renewal(hmac: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    """A request that renews a token."""
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


def expiry(hmac: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    """A request that makes a token expire sooner, or at once."""
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def request_as(broker: Any, user: str, request: Message, version: int | None = None) -> Any:
    """The response to a user's request, in the highest version or in `version`."""
    with as_user(broker, user) as cluster:
        return cluster.request(request, min_version=version, max_version=version)


def create(broker: Any, user: str, *renewers: str, **how: Any) -> Any:
    """A new token of a user."""
    made = request_as(broker, user, creation(*renewers, **how))
    assert made.error_code == 0, made
    return made


def logs_in(broker: Any, token: Any, mechanism: str = MECHANISMS[0]) -> bool:
    """Whether a broker accepts a token.

    Raises:
        ApiError: the login failed for another reason than invalid credentials.
    """
    try:
        with by_token(broker, token, mechanism) as cluster:
            cluster.request(ListGroupsRequest())
    except ApiError as error:
        if REFUSED not in str(error):
            raise
        return False
    return True


def raw_login(raw: RawConnection, token: Any, mechanism: str = MECHANISMS[0]) -> int:
    """Log a connection in by a token. Returns the lifetime of the session in ms."""
    password = base64.b64encode(token.hmac).decode()
    exchange = conversation(
        mechanism, Credentials(token.token_id, password, is_token=True), "nonce"
    )
    raw.request(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse)
    message = next(exchange)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = raw.request(request, 2, SaslAuthenticateResponse)
        assert answer.error_code == 0, answer
        try:
            message = exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            return int(answer.session_lifetime_ms)
