"""`kafkapy delegation-tokens`: Kafka's `kafka-delegation-tokens.sh` (`DelegationTokenCommand`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    flag,
    one_action,
    refuse,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ApiError

if TYPE_CHECKING:
    from kafkapy.admin.delegation_tokens import DelegationToken
    from kafkapy.client.cluster import Cluster

ACTIONS: Final = ("create", "renew", "expire", "describe")
COLUMNS: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS"),
    *("ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)
_WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_DATE: Final = "yyyy-MM-dd'T'HH:mm"


@dataclass
class DelegationTokensOptions(ClusterOptions):
    """The flags of `DelegationTokenCommandOptions`."""

    create: bool = flag("Create a token.")
    describe: bool = flag("Describe tokens: those of --owner-principal, or all that you may see.")
    renew: bool = flag("Extend the life of a token.")
    expire: bool = flag("Shorten the life of a token, or end it at once.")
    owner_principal: list[str] = values(
        "create: the owner, if it is another user; describe: owners or renewers.",
        metavar="TYPE:NAME",
    )
    renewer_principal: list[str] = values(
        "create: other users that may renew and expire the token.", metavar="TYPE:NAME"
    )
    max_life_time_period: int | None = value(
        "create: the maximum lifetime; -1 means the brokers' maximum.", metavar="MS"
    )
    renew_time_period: int | None = value(
        "renew: the time until it expires; -1 means the brokers' default.", metavar="MS"
    )
    expiry_time_period: int | None = value(
        "expire: the time until it expires; -1 means at once.", metavar="MS"
    )
    hmac: str | None = value("renew, expire: the token's HMAC.", metavar="BASE64")


def run(options: DelegationTokensOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action."""
    action = check(options)
    with options.connect(env) as cluster:
        try:
            _ACTIONS[action](cluster, options, env)
        except ApiError as error:
            from kafkapy.admin.errors import java_text

            raise CommandFailed(java_text(error)) from error
    return ExitStatus.SUCCESS


def check(options: DelegationTokensOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text of
            `DelegationTokenCommandOptions.checkArgs`.
    """
    action = one_action(options, ACTIONS, "--create, --renew, --expire or --describe")
    require(options, "bootstrap_server", "command_config", *_REQUIRED.get(action, ()))
    refuse(options, "create", "hmac", "renew_time_period", "expiry_time_period")
    create_options = ("max_life_time_period", "owner_principal")
    refuse(options, "renew", "renewer_principal", "expiry_time_period", *create_options)
    refuse(options, "expire", "renew_time_period", *create_options)
    others = ("renew_time_period", "max_life_time_period", "hmac", "expiry_time_period")
    refuse(options, "describe", *others)
    return action


def _create(cluster: Cluster, options: DelegationTokensOptions, env: Environment) -> None:
    from kafkapy.admin.delegation_tokens import create_token

    renewers = _principals(options.renewer_principal)
    owners = _principals(options.owner_principal)
    period_ms = options.max_life_time_period
    assert period_ms is not None
    _print_line(
        options,
        env,
        f"Calling create token operation with renewers :{_java_list(renewers)} ,"
        f" max-life-time-period :{period_ms}",
    )
    token = create_token(cluster, renewers, period_ms, owners[0] if owners else None)
    summary = f"Created delegation token with tokenId : {token.information.token_id}"
    _show(options, env, [token], [summary, ""])


def _describe(cluster: Cluster, options: DelegationTokensOptions, env: Environment) -> None:
    from kafkapy.admin.delegation_tokens import describe_tokens

    owners = _principals(options.owner_principal)
    scope = f"owners: {_java_list(owners)}" if owners else "current user."
    _print_line(options, env, f"Calling describe token operation for {scope}")
    tokens = describe_tokens(cluster, owners or None)
    _show(options, env, tokens, [f"Total number of tokens : {len(tokens)}"])


def _renew(cluster: Cluster, options: DelegationTokensOptions, env: Environment) -> None:
    from kafkapy.admin.delegation_tokens import renew_token

    period_ms = options.renew_time_period
    assert period_ms is not None
    _print_line(
        options,
        env,
        f"Calling renew token operation with hmac :{options.hmac} , renew-time-period :{period_ms}",
    )
    _show_expiry(options, env, "renew", renew_token(cluster, _hmac(options), period_ms))


def _expire(cluster: Cluster, options: DelegationTokensOptions, env: Environment) -> None:
    from kafkapy.admin.delegation_tokens import expire_token

    period_ms = options.expiry_time_period
    assert period_ms is not None
    _print_line(
        options,
        env,
        f"Calling expire token operation with hmac :{options.hmac} ,"
        f" expire-time-period :{period_ms}",
    )
    _show_expiry(options, env, "expire", expire_token(cluster, _hmac(options), period_ms))


def _principals(texts: Sequence[str]) -> list[str]:
    """The checked principals. Raises ConfigError if a principal is not type:name."""
    from kafkapy.tools.acl_plan import checked_principal

    return [checked_principal(text) for text in texts]


def _hmac(options: DelegationTokensOptions) -> bytes:
    from kafkapy.security.sasl.scram import from_base64

    text = options.hmac or ""
    try:
        return from_base64(text + "=" * (-len(text) % 4))  # as Java, also without its padding
    except ValueError as error:
        raise UsageError(f"--hmac {options.hmac} is not base64: {error}") from None


def _java_list(texts: Sequence[str]) -> str:
    """A list as Java writes it."""
    return f"[{', '.join(texts)}]"


def _print_line(options: DelegationTokensOptions, env: Environment, line: str) -> None:
    """Print the line that Kafka's tool prints before its request."""
    if options.output is not OutputFormat.json:
        env.line(line)


def _show(
    options: DelegationTokensOptions,
    env: Environment,
    tokens: Sequence[DelegationToken],
    head: list[str],
) -> None:
    rows = list(_rows(tokens))
    text = [*head, _line(COLUMNS)]
    for row in rows:
        text += ["", _line(row)]
    data = [_json(token) for token in tokens]
    show(env, Report("delegation-tokens", data, text, [Table(COLUMNS, rows)]), options.output)


def _show_expiry(
    options: DelegationTokensOptions, env: Environment, operation: str, expiry_ms: int
) -> None:
    from kafkapy.tools.java_format import DateFormat

    date = DateFormat(_DATE).format(expiry_ms)
    text = [f"Completed {operation} operation. New expiry date : {date}"]
    data = [{"expiry_timestamp_ms": expiry_ms}]
    show(env, Report("delegation-tokens", data, text), options.output)


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _rows(tokens: Sequence[DelegationToken]) -> Iterator[tuple[str, ...]]:
    from kafkapy.security.sasl.scram import to_base64
    from kafkapy.tools.java_format import DateFormat

    date = DateFormat(_DATE)
    for information, hmac in tokens:
        yield (
            information.token_id,
            to_base64(hmac),
            information.owner,
            information.requester,
            _java_list(information.renewers),
            date.format(information.issue_ms),
            date.format(information.expiry_ms),
            date.format(information.max_ms),
        )


def _json(token: DelegationToken) -> dict[str, Any]:
    from kafkapy.security.sasl.scram import to_base64

    information, hmac = token
    return {
        "token_id": information.token_id,
        "hmac": to_base64(hmac),
        "owner": information.owner,
        "requester": information.requester,
        "renewers": list(information.renewers),
        "issue_timestamp_ms": information.issue_ms,
        "expiry_timestamp_ms": information.expiry_ms,
        "max_timestamp_ms": information.max_ms,
    }


_REQUIRED: Final = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
}
_ACTIONS: Final[dict[str, Callable[[Cluster, DelegationTokensOptions, Environment], None]]] = {
    "create": _create,
    "renew": _renew,
    "expire": _expire,
    "describe": _describe,
}

COMMAND: Final = Command(
    "delegation-tokens",
    DelegationTokensOptions,
    run,
    groups={
        "What to do": "create describe renew expire",
        "Which token": "hmac owner-principal renewer-principal",
        "Times": "max-life-time-period renew-time-period expiry-time-period",
    },
    examples={
        "Create a token with the maximum lifetime.": (
            "--create --max-life-time-period -1 --command-config client.properties {B}"
        ),
        "Describe the tokens that you may see.": (
            "--describe --command-config client.properties {B}"
        ),
        "Expire a token at once.": (
            "--expire --expiry-time-period -1 --hmac c2VjcmV0 --command-config client.properties"
            " {B}"
        ),
    },
)
