"""A Spark job over a topic of log lines: events per level and minute, and the commonest messages.

    kafkapy spark-submit --master 'local[2]' --from logs --bootstrap-server localhost:9092 \
        scripts/jobs/log_summary.py

Reads the topic once, from its first record to its last. It knows the usual line layouts (dpkg.log,
syslog, log4j, Apache httpd, Android, BlueGene); of any other line it takes the time it begins with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import kafkapy.spark

MINUTES_SHOWN = 10
TEMPLATES_SHOWN = 10
TEMPLATE_WIDTH = 100
NOTHING = "-"

DPKG_ACTIONS = "startup|status|install|upgrade|configure|trigproc|remove|purge|conffile|disappear"
LEVELS = "(?i:trace|debug|info|notice|warn(?:ing)?|error|severe|critical|alert|fatal|panic|emerg)"
LEVEL = rf"\b({LEVELS})\b"
LETTERS = {"V": "VERBOSE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
LEVEL_NAMES = LETTERS | {"WARNING": "WARN", "": NOTHING}


class Layout(NamedTuple):
    """The pattern of one kind of line. Group 1 is the minute; then the level, unless it has none;
    the last group is the message."""

    pattern: str
    has_level: bool = True


# The first that matches counts.
LAYOUTS = (
    Layout(rf"^(\d{{4}}-\d\d-\d\d \d\d:\d\d):\d\d ({DPKG_ACTIONS}) (.*)$"),
    # log4j and its kin: date, time, then within a few words the level. Also Python, Hadoop, CBS.
    Layout(
        rf"^\S*? ?(\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d):\d\d\S* .{{0,40}}?\b({LEVELS})\b[\]:,|\s-]*(.*)$"
    ),
    Layout(rf"^(\d\d/\d\d/\d\d \d\d:\d\d):\d\d ({LEVELS}) (.*)$"),  # Spark
    Layout(rf"^(\d{{6}} \d{{4}})\d\d \d+ ({LEVELS}) (.*)$"),  # HDFS: 081109 203615 148 INFO ...
    Layout(r"^\[\w{3} (\w{3} \d\d \d\d:\d\d):\d\d \d{4}\] \[(\w+)\] (.*)$"),  # Apache httpd
    Layout(r"^(\d\d-\d\d \d\d:\d\d):\d\d\.\d+ +\d+ +\d+ ([VDIWEF]) (.*)$"),  # Android
    Layout(
        rf"^\S+ \d+ [\d.]+ \S+ (\d{{4}}-\d\d-\d\d-\d\d\.\d\d)\.\S+ .*?\b({LEVELS}) (.*)$"
    ),  # BGL
    # syslog, also behind the prefix of Thunderbird, and rsyslog with ISO times
    Layout(r"^(?:\S+ \d+ [\d.]+ \S+ )?(\w{3} +\d+ \d\d:\d\d):\d\d \S+ (.*)$", has_level=False),
    Layout(r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):\S+ (.*)$", has_level=False),
    Layout(r"^\W?(.{0,20}?\d?\d:\d?\d):\d?\d[\d.,:]*\W? *(.*)$", has_level=False),
)

# What varies between two messages of one kind, and what stands for it.
MASKS = (
    (r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<uuid>"),
    (r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b", "<ip>"),
    (r"(?<![\w<:/])(/[\w.@+~-]+)+/?", "<path>"),
    (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
    (r"\b(?=\d*[a-fA-F])(?=[a-fA-F]*\d)[0-9a-fA-F]{12,}\b", "<hex>"),
    (r"\b[\w.+-]+:(?:all|amd64|arm64|armhf|i386|ppc64el|riscv64|s390x)\b", "<package>"),
    (r"(?<![\S])[-+]?\d[\w.:+~,-]*", "<n>"),
    (r"\d+", "<n>"),
)


def parse(lines: DataFrame) -> DataFrame:
    """Column `line` to columns `minute`, `level` and `template`; other columns stay.

    In steps, since Spark would copy an expression that is used twice within one.
    """
    line, layout = F.col("line"), F.col("layout")
    kind = reduce(
        lambda other, i: F.when(line.rlike(LAYOUTS[i].pattern), i).otherwise(other),
        reversed(range(len(LAYOUTS))),
        F.lit(None),
    )

    def extract(group: Callable[[Layout], int | None], other: Column) -> Column:
        for i, each in enumerate(LAYOUTS):
            number = group(each)
            found = F.lit("") if number is None else F.regexp_extract(line, each.pattern, number)
            other = F.when(layout == i, found).otherwise(other)
        return other

    message = extract(lambda each: 3 if each.has_level else 2, line)
    for pattern, name in MASKS:
        message = F.regexp_replace(message, pattern, name)
    level = extract(lambda each: 2 if each.has_level else None, F.regexp_extract(line, LEVEL, 1))
    others = [name for name in lines.columns if name != "line"]
    parsed = lines.withColumn("layout", kind).select(
        *others,
        extract(lambda each: 1, F.lit(NOTHING)).alias("minute"),
        F.upper(level).alias("level"),
        F.trim(message).alias("template"),
    )
    names = F.create_map(*[F.lit(word) for pair in LEVEL_NAMES.items() for word in pair])
    return parsed.withColumn("level", F.coalesce(names[F.col("level")], F.col("level")))


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A title and aligned columns; whole numbers stand right."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    numeric = [isinstance(cell, int) for cell in rows[0]] if rows else [False] * len(heads)
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    print(f"\n{title}")
    for row in (heads, *cells):
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        print("  " + "  ".join(aligned).rstrip())
    if not cells:
        print("  (none)")


def print_levels(levels: Counter[str], total: int) -> None:
    rows = [(level, n, f"{n / total:.1%}") for level, n in levels.most_common()]
    print_table("Events per level", ("level", "events", "share"), rows)


def print_minutes(counts: Counter[tuple[str, str]], levels: Counter[str]) -> None:
    """The busiest minutes, in the order of time, with a column for each of the commonest levels."""
    minutes: Counter[str] = Counter()
    for (minute, _), n in counts.items():
        minutes[minute] += n
    shown = sorted(minute for minute, _ in minutes.most_common(MINUTES_SHOWN))
    columns = [level for level, _ in levels.most_common(6)]
    rows = [
        (minute, minutes[minute], *(counts[minute, level] for level in columns)) for minute in shown
    ]
    which = f", the busiest {len(shown)} of {len(minutes):,}" if len(shown) < len(minutes) else ""
    print_table(f"Events per minute{which}", ("minute", "events", *columns), rows)


def main() -> None:
    """Read, count, print."""
    spark = (
        SparkSession.builder.appName("log summary")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    records = kafkapy.spark.read(spark)
    lines = records.select(F.coalesce(F.col("value").cast("string"), F.lit("")).alias("line"))
    events = parse(lines).persist()  # the topic is read once
    counts: Counter[tuple[str, str]] = Counter()
    levels: Counter[str] = Counter()
    for row in events.groupBy("minute", "level").count().collect():
        counts[row["minute"], row["level"]] = row["count"]
        levels[row["level"]] += row["count"]
    top = events.groupBy("level", "template").count().orderBy(F.desc("count"), "level", "template")
    templates = [
        (row["count"], row["level"], row["template"][:TEMPLATE_WIDTH])
        for row in top.limit(TEMPLATES_SHOWN).collect()
    ]

    total = levels.total()
    print(f"\n{total:,} events")
    print_levels(levels, total)
    print_minutes(counts, levels)
    title = f"Top {TEMPLATES_SHOWN} message templates"
    print_table(title, ("events", "level", "template"), templates)
    spark.stop()


if __name__ == "__main__":
    main()
