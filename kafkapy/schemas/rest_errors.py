"""Errors of the REST API, with the codes and texts of Confluent Schema Registry."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from kafkapy.common.errors import KafkapyError
from kafkapy.schemas.records import StoredSchema


class RestError(KafkapyError):
    """A refusal. `code` is the API's error code; its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> HTTPStatus:
        return HTTPStatus(self.code if self.code < 1000 else self.code // 100)


def not_authenticated() -> RestError:
    return RestError(401, "Unauthorized: this registry needs a user and a password")


def only_reads() -> RestError:
    return RestError(40301, "Forbidden: this user may only read")


def other_origin(origin: str) -> RestError:
    return RestError(403, f"Forbidden: a page of {origin} may not use this registry")


def other_host(host: str) -> RestError:
    return RestError(
        403,
        f"Forbidden: {host} may be the name of another site. A registry without users answers on "
        "loopback only to addresses and local names",
    )


def subject_not_found(subject: str) -> RestError:
    return RestError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RestError:
    return RestError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RestError:
    which = "Schema" if schema_id is None else f"Schema {schema_id}"
    return RestError(40403, f"{which} not found")


def subject_soft_deleted(subject: str) -> RestError:
    return RestError(
        40404,
        f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
    )


def subject_not_soft_deleted(subject: str) -> RestError:
    return RestError(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RestError:
    return RestError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. "
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RestError:
    return RestError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently"
        " deleted",
    )


def no_compatibility(subject: str) -> RestError:
    return RestError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def no_mode(subject: str) -> RestError:
    return RestError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, reasons: Sequence[str]) -> RestError:
    return RestError(
        409,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{"; ".join(reasons)}]',
    )


def invalid_schema(schema: StoredSchema, reason: str) -> RestError:
    names = [each.name for each in schema.references]
    return RestError(
        42201,
        f"Invalid schema {schema.text} with refs {names} of type {schema.schema_type},"
        f" details: {reason}",
    )


def too_large() -> RestError:
    return RestError(42209, "Schema too large: it exceeds max.message.bytes of the topic")


def invalid_rules(reason: str) -> RestError:
    return RestError(42210, f"Invalid rule set: {reason}")


def invalid_version(version: str) -> RestError:
    return RestError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between"
        ' [1, 2^31-1] and the string "latest"',
    )


def not_permitted(message: str) -> RestError:
    return RestError(42205, message)


def referenced(subject: str, version: int) -> RestError:
    return RestError(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RestError:
    return RestError(42208, f"The specified subject '{subject}' is not a valid subject.")
