"""`kafkapy dump-log-segments`: Kafka's `kafka-dump-log.sh` (`DumpLogSegments`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    CommonOptions,
    OutputFormat,
    flag,
    is_given,
    refuse,
    require,
    value,
)
from kafkapy.cli.framework.output import ENVELOPE_VERSION, Report, Table, show

if TYPE_CHECKING:
    from kafkapy.tools.dump.decoders import Decoder
    from kafkapy.tools.dump.printers import Depth, Printer

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"
MAX_MESSAGE_BYTES: Final = 5 * 1024 * 1024
ALL_BYTES: Final = 2**31 - 1
_TOPIC_DECODER_FLAGS: Final = (
    *("offsets_decoder", "transaction_log_decoder", "share_group_state_decoder"),
)
_DECODER_FLAGS: Final = (*_TOPIC_DECODER_FLAGS, "key_decoder_class", "value_decoder_class")


@dataclass
class DumpLogOptions(CommonOptions):
    """The flags of `DumpLogSegments`."""

    files: str | None = value(
        "REQUIRED: files of a log directory: .log, .index, .timeindex, .txnindex, .snapshot,"
        " checkpoints and partition.metadata.",
        metavar="FILE,...",
    )
    deep_iteration: bool = flag("Show the records of each batch.")
    print_data_log: bool = flag("Show the records with their keys and values.")
    skip_record_metadata: bool = flag("Show keys and values only.")
    key_decoder_class: str | None = value(
        "The decoder of keys: StringDecoder, LongDecoder, IntegerDecoder, or"
        " DefaultDecoder, which shows bytes as hexadecimal.",
        metavar="CLASS",
        optional_value=STRING_DECODER,
    )
    value_decoder_class: str | None = value(
        "The decoder of values.", metavar="CLASS", optional_value=STRING_DECODER
    )
    offsets_decoder: bool = flag("Decode the records of __consumer_offsets.")
    transaction_log_decoder: bool = flag("Decode the records of __transaction_state.")
    share_group_state_decoder: bool = flag("Decode the records of __share_group_state.")
    index_sanity_check: bool = flag("Check indexes as a broker does when it starts.")
    verify_index_only: bool = flag("Check indexes against the log and do not print them.")
    max_message_size: int = value(
        "The maximum size of a batch that an index entry points to.",
        metavar="BYTES",
        default=MAX_MESSAGE_BYTES,
    )
    max_bytes: int = value(
        "The number of bytes to read of each .log.", metavar="BYTES", default=ALL_BYTES
    )
    verify: str | None = value(
        "Instead of --files: check log directories, or partitions' directories in them,"
        " of a stopped broker. Exits with 1 if there is a problem.",
        metavar="DIR,...",
    )
    strict: bool = flag("Exit with 1 if a file has a fault.")


def run(options: DumpLogOptions, env: Environment) -> ExitStatus:
    """Dump the files. A broken file is reported on stderr; the other files are dumped."""
    from kafkapy.tools.dump.dump_log import Dump
    from kafkapy.tools.dump.files import IndexChecks

    refuse(options, "verify", "files")
    if options.verify is not None:
        return _verify(options.verify, options, env)
    require(options, "files")
    assert options.files is not None
    paths = _paths("files", options.files)
    if options.max_bytes < 0:
        raise UsageError(f"Invalid size: {options.max_bytes}")
    depth, notes = _depth(options)
    checks = IndexChecks(
        options.index_sanity_check, options.verify_index_only, options.max_message_size
    )
    dump = Dump(
        _printer(options, env, depth), env.warn, depth.records, notes, options.max_bytes, checks
    )
    dump.run(paths)
    env.stdout.buffer.flush()
    failed = dump.unreadable or (options.strict and not dump.is_clean)
    return ExitStatus.FAILURE if failed else ExitStatus.SUCCESS


def _paths(option: str, text: str) -> list[str]:
    """The paths of an option.

    Raises:
        UsageError: there are none. With an empty shell variable, every check would succeed.
    """
    paths = [path for path in text.split(",") if path]
    if not paths:
        raise UsageError(f"--{option} names no path")
    return paths


def _verify(directories: str, options: DumpLogOptions, env: Environment) -> ExitStatus:
    from kafkapy.tools.dump.log_dir_check import problems

    found = [each for path in _paths("verify", directories) for each in problems(path)]
    data = [{"path": each.path, "problem": each.message} for each in found]
    rows = [(each.path, each.message) for each in found]
    table = Table(("Path", "Problem"), rows)
    show(env, Report(COMMAND.name, data, map(str, found), [table]), options.output)
    return ExitStatus.FAILURE if found else ExitStatus.SUCCESS


def _depth(options: DumpLogOptions) -> tuple[Depth, list[str]]:
    """The level of detail, and Kafka's notes on it."""
    from kafkapy.tools.dump.printers import Depth

    prints = options.print_data_log or any(is_given(options, name) for name in _DECODER_FLAGS)
    decoder, notes = _decoder(options)
    deep = options.deep_iteration or prints
    metadata = not options.skip_record_metadata
    return Depth(deep, metadata, decoder if prints else None), notes


def _decoder(options: DumpLogOptions) -> tuple[Decoder, list[str]]:
    from kafkapy.tools.dump.decoders import class_decoder

    for name in _TOPIC_DECODER_FLAGS:
        if getattr(options, name):
            from kafkapy.tools.dump.internal_decoders import TOPIC_DECODERS

            return TOPIC_DECODERS[name], []
    return class_decoder(
        options.key_decoder_class or STRING_DECODER, options.value_decoder_class or STRING_DECODER
    )


def _printer(options: DumpLogOptions, env: Environment, depth: Depth) -> Printer:
    if options.output is OutputFormat.json:
        from kafkapy.tools.dump.json_lines import JsonPrinter

        envelope = {"kafkapy": ENVELOPE_VERSION, "command": COMMAND.name}
        return JsonPrinter(env.stdout.buffer.write, depth, envelope)
    from kafkapy.tools.dump.text import TextPrinter

    return TextPrinter(env.stdout.buffer.write, depth, env.warn)


COMMAND: Final = Command(
    "dump-log-segments",
    DumpLogOptions,
    run,
    reported_failures="a file that can be read has a fault",
    refused={
        "cluster-metadata-decoder": "kafkapy's clusters keep their metadata in ZooKeeper; for a"
        " KRaft cluster's use Apache Kafka's tool",
        "remote-log-metadata-decoder": "kafkapy has no tiered storage; use Apache Kafka's tool",
    },
    groups={
        "What to show": (
            "files deep-iteration print-data-log skip-record-metadata max-bytes max-message-size"
        ),
        "Decoders": (
            "key-decoder-class value-decoder-class offsets-decoder transaction-log-decoder"
            " share-group-state-decoder"
        ),
        "What to check": "verify index-sanity-check verify-index-only strict",
    },
    examples={
        "Show the records of a segment.": (
            "--print-data-log --files /tmp/kafka-logs/orders-0/00000000000000000000.log"
        ),
        "Show the groups and the offsets in a partition of __consumer_offsets.": (
            "--offsets-decoder --files"
            " /tmp/kafka-logs/__consumer_offsets-7/00000000000000000000.log"
        ),
        "Check all files of a broker that has stopped.": "--verify /tmp/kafka-logs --strict",
    },
)
