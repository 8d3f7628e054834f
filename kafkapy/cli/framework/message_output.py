"""Common parts of the commands that print messages: the form of a message, and the end of the
command, which flushes, closes and prints the count.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed
from kafkapy.cli.framework.options import OutputFormat
from kafkapy.cli.framework.output import to_json
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.errors import KafkapyError

if TYPE_CHECKING:
    from kafkapy.tools.console.message_formatter import Message, SchemaDecoder


@contextmanager
def message_output(
    env: Environment,
    *,
    count: Callable[[], int],
    reset_offsets: Callable[[], None],
    close: Callable[[], None],
    enable_systest_events: bool,
) -> Iterator[None]:
    """The context for printing messages to `env.stdout.buffer`. At its end it closes the
    consumer and prints the count to stderr. If stdout cannot be written, it first calls
    `reset_offsets`.

    Raises:
        CommandFailed: stdout cannot be written, for another reason than a closed pipe.
    """
    try:
        with terminable():
            yield
        env.stdout.flush()
    except (KeyboardInterrupt, SystemExit, KafkapyError):
        _flush_or_reset_offsets(env, reset_offsets)
        raise
    except TimeoutError:
        env.warn("ERROR Error processing message, terminating consumer process: TimeoutException")
    except OSError as error:
        env.abandon_stdout()
        reset_offsets()
        if not isinstance(error, BrokenPipeError):
            raise CommandFailed.stdout_unwritable(error) from error
        env.warn("Unable to write to standard out, closing consumer.")
    finally:
        try:
            close()
        finally:
            env.warn(f"Processed a total of {count()} messages")
            if enable_systest_events:
                env.line("shutdown_complete")


def _flush_or_reset_offsets(env: Environment, reset_offsets: Callable[[], None]) -> None:
    """Write the records that were read, before closing the consumer commits their offsets."""
    is_written = False
    try:
        env.stdout.flush()
        is_written = True
    except OSError:
        env.abandon_stdout()
    finally:
        if not is_written:
            reset_offsets()


def renderer(
    command: str, formatter: str | None, properties: Mapping[str, str], output: OutputFormat | None
) -> Callable[[Message], bytes]:
    """A function that renders a record as bytes: a formatter's text, or a line with an envelope.

    Raises:
        ConfigError: the formatter is unknown, or a property is wrong.
    """
    from kafkapy.tools.console.formatters import make_formatter, uses_registry

    if output is not OutputFormat.json:
        return make_formatter(formatter, properties).format
    decode = None
    if uses_registry(properties):
        from kafkapy.tools.console.registry_values import registry_decoder

        decode = registry_decoder(properties)
    return lambda message: to_json(command, [_json(message, decode)]).encode() + b"\n"


def _json(message: Message, decode: SchemaDecoder | None) -> dict[str, Any]:
    key, value, deliveries = message.key, message.value, message.delivery_count
    if decode is not None:
        key = None if key is None else decode("key", key, message)
        value = None if value is None else decode("value", value, message)
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": None if message.timestamp_type is None else message.timestamp,
        "timestamp_type": message.timestamp_type,
        **({} if deliveries is None else {"delivery_count": deliveries}),
        "headers": [
            {"key": key, **_bytes_json("value", value)} for key, value in message.read_headers()
        ],
        **_bytes_json("key", key),
        **_bytes_json("value", value),
    }


def _bytes_json(name: str, raw: bytes | None) -> dict[str, str | None]:
    """The field as text, or in base64 under another name if it is not UTF-8."""
    try:
        return {name: None if raw is None else raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw or b"").decode()}
