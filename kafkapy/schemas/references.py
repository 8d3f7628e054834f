"""The schemas that a schema refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.records import Reference


def texts_of(
    references: Iterable[Reference],
    find: Callable[[Reference], tuple[str, Iterable[Reference]]],
) -> dict[str, str]:
    """The texts of all schemas that are referred to, by name. Each follows those that it refers to,
    except in a cycle, which another registry may have allowed. If two schemas have the same name,
    the first one is used, as in Confluent's registry. `find` returns the text and the references
    of a schema.

    Raises:
        InvalidSchema: the references are nested too deeply.
    """
    texts = dict[str, str]()
    names = set[str]()

    def add(references: Iterable[Reference]) -> None:
        for each in references:
            if each.name not in names:
                names.add(each.name)
                text, others = find(each)
                add(others)
                texts[each.name] = text

    try:
        add(references)
    except RecursionError as error:
        raise InvalidSchema("its references are nested too deeply") from error
    return texts
