"""Write what is generated: the tables in docs/, the manual pages in man/, the site.

A table stands between `<!-- generated: NAME -->` and `<!-- end -->`.

    scripts/docs               write the tables and manual pages
    scripts/docs --check       fail, naming the files, if one is out of date
    scripts/docs --site [DIR]  build the site into DIR (default: site); a warning is an error
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dev.docs import examples, man_pages, mistakes_page, reference, tools_page
from dev.report import ROOT, table
from kafkapy.cli.framework.command_table import COMMANDS, GROUPS
from kafkapy.server.api.handlers import SERVED
from kafkapy.spark.source.option_table import (
    SEGMENT_OPTIONS,
    SINK_CLIENT_OPTIONS,
    SINK_OPTIONS,
    SOURCE_CLIENT_OPTIONS,
    SOURCE_OPTIONS,
    Option,
)

BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def apis() -> str:
    """Every API the broker serves."""
    rows = [
        [key, api.name, f"{api.min_version} - {api.max_version}"] for key, api in SERVED.items()
    ]
    return table(["key", "API", "versions"], sorted(rows))


def commands() -> str:
    """Every command of `kafkapy`."""
    rows = [
        [heading, f"`{name}`", COMMANDS[name]]
        for heading, names in GROUPS.items()
        for name in names
    ]
    return table(["for", "command", "what it does"], rows)


def spark_source() -> str:
    """Every option of a read."""
    return option_table((*SOURCE_CLIENT_OPTIONS, *SOURCE_OPTIONS))


def spark_sink() -> str:
    """Every option of a write."""
    return option_table((*SINK_CLIENT_OPTIONS, *SINK_OPTIONS))


def spark_segments() -> str:
    """Every option of reading log directories."""
    return option_table(SEGMENT_OPTIONS)


def option_table(options: Iterable[Option]) -> str:
    rows = [[f"`{o.name}`", o.valid_in, o.default, o.meaning] for o in options]
    return table(["option", "valid in", "default", "meaning"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "apis": apis,
    "commands": commands,
    "command_flags": reference.command_flags,
    "common_flags": reference.common_flags,
    "statuses_of_reported_failures": reference.statuses_of_reported_failures,
    "broker_configs": reference.broker_configs,
    "broker_configs_without_effect": reference.broker_configs_without_effect,
    "refused_broker_configs": reference.refused_broker_configs,
    "removed_broker_configs": reference.removed_broker_configs,
    "topic_configs": reference.topic_config_table,
    "metrics": reference.metrics,
    "examples": examples.page,
    "tools": tools_page.page,
    "mistakes": mistakes_page.page,
    "spark_source": spark_source,
    "spark_sink": spark_sink,
    "spark_segments": spark_segments,
}


def refreshed(text: str) -> str:
    """The document with every generated block brought up to date."""
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def documents() -> Iterator[tuple[Path, str | None]]:
    """Every document and its text; None if the document must not exist."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path, refreshed(path.read_text())
    pages = man_pages.pages()
    for name in sorted({*pages, *(path.name for path in man_pages.DIRECTORY.glob("*"))}):
        yield man_pages.DIRECTORY / name, pages.get(name)


def write(check: bool) -> int:
    """Write stale documents, or with `check` print their names. Returns the exit status."""
    stale = []
    for path, text in documents():
        if text == (path.read_text() if path.exists() else None):
            continue
        stale.append(path.relative_to(ROOT))
        if check:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"{name} {'is out of date: run scripts/docs' if check else 'written'}")
    return 1 if check and stale else 0


def build_site(directory: Path, settings: Path = ROOT / "mkdocs.yml") -> int:
    """Build the site from docs/ with MkDocs. A dead link is an error. Returns the exit status."""
    # Not --quiet: with it, MkDocs does not count its own warnings, and --strict passes.
    command = ["mkdocs", "build", "--strict", "--config-file", str(settings)]
    command += ["--site-dir", str(directory.absolute())]
    # The theme prints a notice about its successor on every build.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    else:
        print(f"The site is in {directory}: open {directory / 'index.html'}.")
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/docs", description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail if a file is out of date")
    what.add_argument("--site", nargs="?", type=Path, const=Path("site"), metavar="DIR")
    options = parser.parse_args()
    return build_site(options.site) if options.site else write(options.check)


if __name__ == "__main__":
    sys.exit(main())
