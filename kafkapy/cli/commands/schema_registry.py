"""`kafkapy schema-registry`: serves the REST API of Confluent Schema Registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, properties_of, require, value

if TYPE_CHECKING:
    from ssl import SSLContext


@dataclass
class SchemaRegistryOptions(ClusterOptions):
    """The address, the topic, the certificate and the users of a registry."""

    listener: str = value(
        "The address of the HTTP server; port 0 is a free one.",
        metavar="HOST:PORT",
        default="127.0.0.1:8081",
    )
    topic: str = value("The topic that has the schemas.", metavar="TOPIC", default="_schemas")
    tls_certificate: str | None = value(
        "Serve HTTPS with the certificates of this PEM file.", metavar="FILE"
    )
    tls_key: str | None = value(
        "The PEM file with the certificate's key; default: the same file.", metavar="FILE"
    )
    users: str | None = value(
        "Require a login (HTTP basic) as a user of this file. Its lines are 'NAME: PASSWORD', or"
        " 'NAME: PASSWORD,read-only' for a user that may only read.",
        metavar="FILE",
    )


def run(options: SchemaRegistryOptions, env: Environment) -> ExitStatus:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        UsageError: an option is missing or malformed.
        CommandFailed: the address cannot be used.
        ConfigError: a package is missing, the file of users is malformed, or the topic has several
            partitions.
        ApiError: the topic can be neither created nor read.
    """
    require(options, "bootstrap_server")
    host, port = _address(options.listener)
    tls = _tls(options)
    from kafkapy.schemas.packages import require_packages

    require_packages()
    import asyncio

    from kafkapy.schemas.http_server import HttpServer
    from kafkapy.schemas.registry_service import API_TIMEOUT, open_registry
    from kafkapy.schemas.users import load_users

    users = load_users(options.users) if options.users is not None else None
    properties = API_TIMEOUT | properties_of(options.command_config)
    properties["bootstrap.servers"] = options.bootstrap_server or ""
    with (
        options.connect(env, "schema-registry", API_TIMEOUT) as cluster,
        open_registry(cluster, properties, options.topic) as service,
    ):

        def announce(url: str) -> None:
            env.line(f"The schema registry serves {service.subjects} subjects at {url}")
            env.stdout.flush()

        try:
            server = HttpServer(service, users)
            asyncio.run(server.run_until_signal(host, port, tls, announce))
        except OSError as error:
            # Without the cause, whose hint is about the brokers.
            raise CommandFailed(f"Cannot listen on {options.listener}: {error}") from None
    return ExitStatus.SUCCESS


def _address(listener: str) -> tuple[str, int]:
    from kafkapy.client.properties import host_and_port

    found = host_and_port(listener)
    if found is None:
        raise UsageError(f"--listener: expected HOST:PORT, found '{listener}'")
    return found


def _tls(options: SchemaRegistryOptions) -> SSLContext | None:
    if options.tls_certificate is None:
        if options.tls_key is not None:
            raise UsageError("--tls-key needs --tls-certificate")
        return None
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(options.tls_certificate, options.tls_key)
    except OSError as error:
        files = f"--tls-certificate {options.tls_certificate}"
        if options.tls_key is not None:
            files += f", --tls-key {options.tls_key}"
        wanted = "expected certificates and their key in PEM: "
        reason = f"{wanted if isinstance(error, ssl.SSLError) else ''}{error}"
        # Without the cause, whose hint is about the brokers.
        raise UsageError(f"{files}: {reason}") from None
    return context


COMMAND: Final = Command(
    "schema-registry",
    SchemaRegistryOptions,
    run,
    help="Serve a schema registry with the REST API of Confluent Schema Registry.",
    groups={
        "What to serve": "listener topic",
        "HTTPS and login": "tls-certificate tls-key users",
    },
    examples={
        "Serve at http://127.0.0.1:8081, which only this machine reaches.": "{B}",
        "Serve HTTPS to the users of a file.": (
            "--listener 0.0.0.0:8081 --tls-certificate server.pem --users users.properties {B}"
        ),
    },
)
