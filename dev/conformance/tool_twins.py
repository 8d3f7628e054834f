"""dump-log-segments and the state-change-log merger beside Apache Kafka's: same files, same text.

`run` compares on files of an Apache Kafka broker and of a kafkapy broker; `record` stores small
files of Apache Kafka and the output of its tool for `scripts/test`, which has no Java.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from dev import report
from tests.conformance import dump_corpus, dump_twin, merger_twin
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess

DATA = report.ROOT / "tests" / "data" / "dump_log"
MERGER_DATA = DATA.parent / "state_change_logs"
RECORDED_COUNT = 40
SAME = "same"
PrintLine = Callable[[str], None]


def run(print_line: PrintLine) -> tuple[bool, str]:
    """Compare. Returns whether nothing differs, and a part for docs/evidence/conformance.md."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory(prefix="kafkapy-tools-") as scratch:
        for name, log_dir in (
            ("Apache Kafka", apache_logs(Path(scratch) / "apache", 2_000)),
            ("kafkapy", our_logs(Path(scratch) / "ours")),
        ):
            rows += dump_rows(print_line, name, log_dir)
        rows += merger_rows(print_line, Path(scratch))
    head = ["tool", "flags", "input", "lines", "our text"]
    return all(row[-1] == SAME for row in rows), (
        f"{report.today()}, {report.kafkapy_version()}. Apache Kafka {apache_kafka.VERSION}'s"
        " `DumpLogSegments` and\n`StateChangeLogMerger`, and kafkapy's tools, read the same"
        " files:\n\n- segments with every codec, transactions, compaction, the formats v0 and v1,"
        " and group metadata;\n- state-change logs of the old format.\n\n*same*: stdout is equal"
        " byte for byte, except for the merger's deprecation notice. The findings and\nthe exit"
        " status of the dump are equal too.\n\n" + report.table(head, rows)
    )


def dump_rows(print_line: PrintLine, name: str, log_dir: Path) -> list[list[object]]:
    """A row for each way of reading a log directory that `name` wrote."""
    rows: list[list[object]] = []
    for case in dump_twin.cases(log_dir):
        kafka = dump_twin.kafka(case, log_dir)
        found = dump_twin.difference(case, kafka, dump_twin.ours(case, log_dir))
        print_line(f"  files of {name}: {found or case.name + ' is the same'}")
        verdict = SAME if found is None else f"DIFFERS at {found.what}"
        files = f"{len(case.files)} files of {name}"
        rows.append(["dump-log", flags(case.flags), files, kafka.stdout.count(b"\n"), verdict])
    return rows


def merger_rows(print_line: PrintLine, scratch: Path) -> list[list[object]]:
    """A row for each way of merging."""
    directory = scratch / "state-change"
    directory.mkdir()
    merger_twin.write_logs(directory, 20_000)
    rows: list[list[object]] = []
    for case in merger_twin.cases():
        kafka = merger_twin.kafka(case, directory)
        verdict = SAME if kafka == merger_twin.ours(case, directory) else "DIFFERS"
        print_line(f"  merger: {case.name} is {verdict}")
        rows.append(["merger", flags(case.words[2:]), case.name, kafka.count(b"\n"), verdict])
    return rows


def flags(words: Iterable[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def apache_logs(log_dir: Path, count: int) -> Path:
    """A log directory that an Apache Kafka broker has written and closed."""
    with apache_kafka.ApacheBroker(log_dir, dump_corpus.BROKER_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        dump_corpus.write_topics(servers, log_dir, count=count)
    dump_corpus.write_legacy(log_dir)
    return log_dir


def our_logs(log_dir: Path) -> Path:
    """A log directory that a kafkapy broker has written and closed."""
    with BrokerProcess(log_dir, dump_corpus.BROKER_SETTINGS) as broker:
        dump_corpus.write_topics(broker.bootstrap_servers, log_dir)
    return log_dir


def record(print_line: PrintLine) -> None:
    """Regenerate tests/data/dump_log."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-tools-") as scratch:
        logs = apache_logs(Path(scratch) / "apache", RECORDED_COUNT)
        shutil.rmtree(DATA, ignore_errors=True)
        for path in sorted(logs.glob("*-*/*")):
            kept = path.suffix in dump_twin.SUFFIXES or path.name == "leader-epoch-checkpoint"
            if kept and not path.parent.name.startswith("__cluster"):
                target = DATA / "logs" / path.relative_to(logs)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    for case in dump_twin.cases(DATA / "logs"):
        output = dump_twin.kafka(case, DATA / "logs")
        assert output.status == 0, output
        (DATA / f"{case.name}.out").write_bytes(output.stdout)
        if output.stderr:
            (DATA / f"{case.name}.err").write_text("".join(f"{line}\n" for line in output.stderr))
        print_line(f"  recorded {case.name}")
    record_merger(print_line)


def record_merger(print_line: PrintLine) -> None:
    """Regenerate tests/data/state_change_logs."""
    shutil.rmtree(MERGER_DATA, ignore_errors=True)
    (MERGER_DATA / "logs").mkdir(parents=True)
    logs = merger_twin.write_logs(MERGER_DATA / "logs", RECORDED_COUNT)
    for merge in merger_twin.cases():
        (MERGER_DATA / f"{merge.name}.out").write_bytes(merger_twin.kafka(merge, logs))
        print_line(f"  recorded the merger's {merge.name}")
