"""`kafkapy schemas`: lists, registers, compares and deletes the schemas of a schema registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    CommonOptions,
    flag,
    one_action,
    properties_of,
    refuse_other_actions,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.java_numbers import is_integer

if TYPE_CHECKING:
    from kafkapy.common.errors import KafkapyError

ACTIONS: Final = ("list_", "describe", "register", "check", "delete", "alter")
_LISTED: Final = "--list, --describe, --register, --check, --delete or --alter."
# As `SchemaType` and `Level`, which the command imports only when it runs.
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_TYPE_OF_SUFFIX: Final = {".avsc": "AVRO", ".avro": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
LEVELS: Final = (
    *("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE", "NONE"),
)
_NEEDS_SUBJECT: Final = ("describe", "register", "check", "delete")


@dataclass
class SchemasOptions(CommonOptions):
    """The registry, one action, and its subject."""

    schema_registry: str | None = value(
        "REQUIRED: the schema registries, of which the first that answers is used.",
        metavar="URL,...",
    )
    command_config: str | None = value(
        "A property file with the login: basic.auth.user.info=USER:PASSWORD.", metavar="FILE"
    )
    list_: bool = flag("Print the subjects.")
    describe: bool = flag("Print the versions of a subject with their schemas.")
    register: bool = flag("Add a schema to a subject, if it is not there.")
    check: bool = flag("Compare a schema with a subject: the exit status is 1 if it is refused.")
    delete: bool = flag("Soft-delete a version, or all versions of a subject.")
    alter: bool = flag("Set the compatibility level of a subject, or of all.")
    subject: str | None = value(
        "The subject, such as orders-value.", metavar="SUBJECT",
        actions=("describe", "register", "check", "delete", "alter"),
    )  # fmt: skip
    schema_version: str | None = value(
        "One version: a number, or latest.", metavar="VERSION", actions=("describe", "delete")
    )
    schema_file: str | None = value(
        "The file with the schema.", metavar="FILE", actions=("register", "check")
    )
    schema_type: str | None = value(
        "The type of the schema. Default: that of the file's suffix, .avsc, .json or .proto.",
        metavar="AVRO|JSON|PROTOBUF",
        choices=TYPES,
        actions=("register", "check"),
    )
    reference: list[str] = values(
        "A version that the schema refers to by a name; -1 is the latest. It may be repeated.",
        metavar="NAME=SUBJECT:VERSION",
        actions=("register", "check"),
    )
    compatibility: str | None = value(
        "The compatibility level.", metavar="LEVEL", choices=LEVELS, actions=("alter",)
    )
    deleted: bool = flag("Also soft-deleted ones.", actions=("list", "describe"))
    permanent: bool = flag("Remove what is soft-deleted.", actions=("delete",))


def run(options: SchemasOptions, env: Environment) -> ExitStatus:
    """Check the options, then do the one action.

    Raises:
        UsageError: an option is missing or malformed.
        CommandFailed: the registry refuses, a file cannot be read, or a schema is incompatible.
        ConfigError: the URL is malformed.
        RegistryError: no registry answers.
    """
    action = check(options)
    from kafkapy.schemas.registry_admin import RegistryAdmin
    from kafkapy.schemas.registry_client import Refused, registry_client

    user_info = properties_of(options.command_config).get("basic.auth.user.info")
    admin = RegistryAdmin(registry_client(options.schema_registry or "", user_info))
    try:
        report, failure = _ACTIONS[action](admin, options)
    except Refused as error:
        raise CommandFailed(error.reason) from error
    show(env, report, options.output)
    if failure is not None:
        raise failure
    return ExitStatus.SUCCESS


def check(options: SchemasOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: an option is missing, or belongs to another action.
    """
    action = one_action(options, ACTIONS, _LISTED)
    require(options, "schema_registry")
    refuse_other_actions(options, action.rstrip("_"))
    if action in _NEEDS_SUBJECT:
        require(options, "subject")
    if options.subject == "":  # an unset variable of a script must not mean all subjects
        raise UsageError("--subject: expected a name")
    if action in ("register", "check"):
        require(options, "schema_file")
    if action == "alter":
        require(options, "compatibility")
    options.compatibility = _one_of("--compatibility", options.compatibility, LEVELS)
    options.schema_type = _one_of("--schema-type", options.schema_type, TYPES)
    return action


def _one_of(option: str, given: str | None, words: Sequence[str]) -> str | None:
    if given is not None and given.upper() not in words:
        raise UsageError(f"{option}: expected one of {', '.join(words)}, found '{given}'")
    return given and given.upper()


Outcome = tuple[Report, "KafkapyError | None"]


def _list(admin: Any, options: SchemasOptions) -> Outcome:
    found = admin.subjects(deleted=options.deleted)
    return Report("schemas", found, found, [Table(("Subject",), [(each,) for each in found])]), None


def _describe(admin: Any, options: SchemasOptions) -> Outcome:
    subject, number = options.subject or "", options.schema_version
    if number is None:
        found = admin.versions(subject, deleted=options.deleted)
    else:
        found = [admin.version(subject, number, deleted=options.deleted)]
    level = admin.level(subject)
    text = []
    for each in found:
        words = [f"Subject: {subject}", f"Version: {each.version}", f"Id: {each.schema_id}"]
        words += [f"Type: {each.schema_type}", f"Compatibility: {level}"]
        text += ["\t".join(words), *each.text.splitlines()]
    data = [{**each.fields, "compatibilityLevel": level} for each in found]
    rows = [(each.version, each.schema_id, each.schema_type, each.text.strip()) for each in found]
    table = Table(("Version", "Id", "Type", "Schema"), rows, f"{subject} ({level})")
    return Report("schemas", data, text, [table]), None


def _register(admin: Any, options: SchemasOptions) -> Outcome:
    found = admin.register(options.subject, _schema(options))
    line = f"Subject {found.subject} has the schema as version {found.version} with the id"
    data = {"subject": found.subject, "version": found.version, "id": found.schema_id}
    return Report("schemas", [data], [f"{line} {found.schema_id}."]), None


def _check(admin: Any, options: SchemasOptions) -> Outcome:
    subject = options.subject
    reasons = admin.incompatibilities(subject, _schema(options))
    data = [{"subject": subject, "compatible": not reasons, "reasons": reasons}]
    if not reasons:
        line = f"Subject {subject} would accept the schema."
        return Report("schemas", data, [line]), None
    table = Table(("Reason",), [(each,) for each in reasons])
    failure = CommandFailed(f"Subject {subject} would refuse the schema: it is not compatible")
    return Report("schemas", data, reasons, [table]), failure


def _delete(admin: Any, options: SchemasOptions) -> Outcome:
    subject = options.subject
    found = admin.delete(subject, options.schema_version, permanent=options.permanent)
    how = "Removed" if options.permanent else "Soft-deleted"
    versions = f"version{'' if len(found) == 1 else 's'} {', '.join(map(str, found))}"
    line = f"{how} {versions} of subject {subject}."
    return Report("schemas", [{"subject": subject, "versions": found}], [line]), None


def _alter(admin: Any, options: SchemasOptions) -> Outcome:
    from kafkapy.schemas.records import Level

    level = Level(options.compatibility or "")
    admin.set_level(options.subject, level)
    whose = "all subjects" if options.subject is None else f"subject {options.subject}"
    line = f"The compatibility level of {whose} is {level}."
    return Report("schemas", [{"subject": options.subject, "compatibility": level}], [line]), None


def _schema(options: SchemasOptions) -> Any:
    """The schema in the file.

    Raises:
        UsageError: its type is not known, or a reference is malformed.
        CommandFailed: the file cannot be read.
    """
    from kafkapy.schemas.records import SchemaType
    from kafkapy.schemas.registry_admin import NewSchema

    path = Path(options.schema_file or "")
    name = options.schema_type or _TYPE_OF_SUFFIX.get(path.suffix.lower())
    if name is None:
        raise UsageError(f"--schema-type is required for a file with the suffix '{path.suffix}'")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandFailed(f"Cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandFailed(f"Cannot read {path}: it is not UTF-8") from None
    return NewSchema(SchemaType(name), text, [_reference(word) for word in options.reference])


def _reference(word: str) -> Any:
    from kafkapy.schemas.records import Reference

    name, _, rest = word.partition("=")
    subject, _, version = rest.rpartition(":")
    if not (name and subject and is_integer(version)):
        raise UsageError(f"--reference: expected NAME=SUBJECT:VERSION, found '{word}'")
    return Reference(name, subject, int(version))


_ACTIONS: Final[Mapping[str, Callable[[Any, SchemasOptions], Outcome]]] = {
    "list_": _list,
    "describe": _describe,
    "register": _register,
    "check": _check,
    "delete": _delete,
    "alter": _alter,
}

COMMAND: Final = Command(
    "schemas",
    SchemasOptions,
    run,
    groups={
        "Connection": "schema-registry",
        "What to do": "list describe register check delete alter",
        "Of what": "subject schema-version deleted permanent",
        "The schema": "schema-file schema-type reference compatibility",
    },
    examples={
        "Print the versions of a subject.": (
            "--schema-registry http://127.0.0.1:8081 --describe --subject orders-value"
        ),
        "Check in a build whether a schema would be accepted.": (
            "--schema-registry http://127.0.0.1:8081 --check --subject orders-value"
            " --schema-file order.avsc"
        ),
        "Register it.": (
            "--schema-registry http://127.0.0.1:8081 --register --subject orders-value"
            " --schema-file order.avsc"
        ),
        "Accept only schemas that earlier and later ones can read.": (
            "--schema-registry http://127.0.0.1:8081 --alter --subject orders-value"
            " --compatibility FULL"
        ),
    },
)
