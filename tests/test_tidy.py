"""House rules as tests: sizes, docstrings, banned calls, a test file for each module.

An exception is named here, with its reason, or it is not one.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kafkapy.cli.framework.command_table import COMMANDS, module_of
from tests.harness.tools.syntax_trees import nodes_of

ROOT = Path(__file__).parents[1]
MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 600
MAX_RECORD_LINES = 50

# Declarative tables: one literal that only grows with Kafka.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

# The places that must survive any fault of what they run.
CATCH_ALL = {
    "kafkapy/server/api/dispatcher.py": "a fault of one request is that request's error code",
    "kafkapy/server/api/produce_append.py": "a fault of one row's append is that row's error code",
    "kafkapy/schemas/registry_service.py": "a fault of one request is that request's answer",
    "kafkapy/common/lasting_work.py": "a fault is logged, and the work begins anew",
    "kafkapy/server/scheduler.py": "a background task's fault is logged and does not end the rest",
}
MAY_SLEEP = {
    "dev/bench/growth_meter.py": "lets time pass for a broker at rest, whose cost is measured",
    "dev/bench/cluster_probes.py": "looks at a cluster again and again, and seldom: it is measured",
    "kafkapy/client/cluster.py": "the back-off between retries (retry.backoff.ms)",
    "kafkapy/schemas/schemas_topic.py": "the back-off between attempts to write",
    "kafkapy/spark/source/stream_reader.py": "ten requests a second, not ninety",
    "kafkapy/common/system.py": "a thread that lets the event loop have the interpreter lock",
    "tests/harness/processes/waiting.py": "the one place that looks again until a condition holds",
}

# Exceptions from mypy's `disallow_any_explicit` (pyproject), and how many.
EXPLICIT_ANY = {
    "kafkapy/coordinator/config.py": (1, "values of configs, by name"),
    "kafkapy/coordinator/groups/consumer/consumer_group.py": (3, "records of any type, in a table"),
    "kafkapy/coordinator/groups/consumer/records.py": (3, "records of any type, in a table"),
    "kafkapy/server/api/authorization_rules.py": (1, "a rule of any API, in a table"),
    "kafkapy/server/api/dispatcher.py": (1, "a decoded request of any API"),
    "kafkapy/server/api/handler_table.py": (2, "a handler of any API, in a table"),
    "kafkapy/server/api/served.py": (2, "a row of the table of APIs"),
    "kafkapy/storage/log_config.py": (1, "values of topic configs, by name"),
}
# Modules without a test file of their own, and what covers them instead.
TESTED_ELSEWHERE = {
    "kafkapy/protocol/messages/": "tests/conformance/test_protocol_kio.py: every message, version",
    "kafkapy/replication/shares/": "tests/scenarios/share_partitions",
    "kafkapy/record/binary_columns.py": "tests/unit/record/test_columns.py, test_row_batches.py",
    "kafkapy/record/codec_frames.py": "tests/unit/record/test_compression.py, test_java_bytes.py",
    "kafkapy/record/compiled.py": "the tests of column_kernels and row_kernels",
    "kafkapy/server/api/handlers/": "tests/integration/test_served_apis.py: every API and version",
    "kafkapy/server/api/fetch_answer.py": "tests/unit/server/api/test_fetch_fast_path.py",
    "kafkapy/server/api/produce_answer.py": "tests/unit/server/api/test_produce_fast_path.py",
    "kafkapy/server/api/request_context.py": "fields, no behaviour",
    "kafkapy/server/requests/request_handler.py": "protocols, no behaviour",
    "kafkapy/server/api/served.py": "fields, no behaviour",
    "kafkapy/admin/share_groups.py": "tests/integration/test_share_groups.py",
    "kafkapy/cli/commands/schemas.py": "tests/integration/test_schemas_command.py",
    "kafkapy/cli/commands/verifiable_share_consumer.py": "tests/integration/test_share_groups.py",
    "kafkapy/cli/framework/failures.py": "tests/unit/cli/commands/test_consumer_groups.py",
    "kafkapy/coordinator/groups/share/messages.py": "fields, no behaviour",
    "kafkapy/coordinator/groups/share/share_group.py": "test_heartbeat.py, test_states.py",
    "kafkapy/coordinator/shares/messages.py": "fields, no behaviour",
    "kafkapy/server/api/group_rules.py": "test_authorization_rules.py",
    "kafkapy/server/api/share_requests.py": "tests/integration/test_share_groups.py",
    "kafkapy/server/api/share_state_requests.py": "tests/integration/test_served_share_groups.py",
    "kafkapy/server/coordinators/share_setup.py": "every test with a broker process",
    "kafkapy/server/coordinators/transaction_setup.py": "every test with a broker process",
    "kafkapy/server/network/listener_setup.py": "every test with a broker process",
    "kafkapy/server/changes/stored_changes.py": "test_acl_changes.py, test_token_changes.py",
    "kafkapy/cli/commands/reassign/execute.py": "test_actions.py: each way it ends",
    "kafkapy/cli/commands/reassign/list_moves.py": "test_actions.py: test_list",
    "kafkapy/__main__.py": "tests/integration/test_testing.py: test_until_eof_...",
    "kafkapy/pytest_plugin.py": "tests/integration/test_testing.py: test_pytest_finds_the_fixtures",
    "kafkapy/testing/": "tests/integration/test_testing.py: brokers, and pytest as users run it",
    "kafkapy/testing_broker.py": "tests/integration/test_testing.py: test_the_broker_and_...",
    "kafkapy/schemas/parsed_schema.py": "protocols, no behaviour",
    "kafkapy/cli/views/perf_metrics.py": "test_producer_perf.py, tests/cli/test_perf_live.py",
    "kafkapy/schemas/records.py": "test_registry_state.py: records of ours and of Confluent's",
    "kafkapy/schemas/rest_errors.py": "test_rest_api.py, test_registry.py",
    "kafkapy/schemas/schema_types.py": "test_registry.py: test_references",
    "kafkapy/schemas/registry_admin.py": "tests/integration/test_schemas_command.py",
    "kafkapy/server/system.py": "test_pid_file.py; every test with a broker process",
}
# State of modules that changes, and why two threads may change it at a time.
MODULE_STATE = {
    "kafkapy/protocol/messages/__init__.py _CLASSES": "each key has one value, an imported class",
    "kafkapy/protocol/primitives.py few_numbers": "a pure function: computed twice at worst",
    "kafkapy/protocol/schema.py _arrays_of": "a pure function: computed twice at worst",
    "kafkapy/replication/replication_quota.py _partitions_on": "a pure function",
    "kafkapy/schemas/schema_types.py parse_text": "a pure function",
    "kafkapy/server/config/config_documentation.py _texts": "a file that does not change",
    "kafkapy/server/coordinators/group_topics.py _pattern": "a pure function",
    "kafkapy/spark/source/arrow.py _constants": "a pure function",
    "kafkapy/spark/values/decoding.py _reader": "only the thread of a Spark worker decodes",
    "kafkapy/spark/values/encoding.py _writer": "only the thread of a Spark worker encodes",
    "kafkapy/spark/workers/engine.py clusters": "only the thread of a Spark worker reads ranges",
    "kafkapy/storage/filesystem.py _threads": "a pool of threads too many at worst",
    "kafkapy/testing/forks.py _calls": "read only in a forked process, by its one thread",
    "kafkapy/zk/service/permissions.py _is_allowed": "a pure function",
}
# Modules that are found by name.
USED_BY_NAME = {
    "kafkapy/cli/framework/typer_form.py": "the app that tests hand to CliRunner",
    "kafkapy/cli/main.py": "the console script",
    "kafkapy/protocol/messages/": "protocol.messages finds them by API key",
    "kafkapy/pytest_plugin.py": "the entry point by which pytest finds it",
    "kafkapy/testing_broker.py": "KafkaBroker starts it",
}


@cache
def python_files(*folders: str) -> tuple[str, ...]:
    """The Python files of the repository's folders."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".py" and "__pycache__" not in path.parts:
                found.append(str(path.relative_to(ROOT)))
    return tuple(found)


@pytest.fixture(autouse=True, scope="module")
def trees(uncollected: None) -> Iterator[None]:
    """The trees of all files, as long as they are of use."""
    yield
    for kept in (tree, nodes, calls):
        kept.cache_clear()


EVERYTHING = ("kafkapy", "dev", "scripts", "tests")
ENTRY_MODULES = ("pyspark_kafkapy.py", "pyspark_kafkapy_segments.py")  # that Spark finds


@cache
def text(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def tree(path: str) -> ast.Module:
    return ast.parse(text(path), path)


@cache
def nodes(path: str) -> tuple[ast.AST, ...]:
    """Every node of a module."""
    return tuple(nodes_of(tree(path)))


def expect_none(rule: str, violations: Iterator[str] | list[str]) -> None:
    found = list(violations)
    assert not found, "\n".join([f"{rule} ({len(found)}):", *found])


@cache
def calls(path: str) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of each call whose callee is a plain dotted name."""
    return tuple(
        (node.lineno, name)
        for node in nodes(path)
        if isinstance(node, ast.Call) and (name := dotted(node.func))
    )


def dotted(node: ast.expr) -> str:
    """`a.b` of an expression that is a name, or of attributes of one; else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def banned_calls(paths: tuple[str, ...], is_banned: Callable[[str], bool]) -> Iterator[str]:
    for path in paths:
        for line, name in calls(path):
            if is_banned(name):
                yield f"{path}:{line} calls {name}"


def test_lines_fit() -> None:
    long_lines = (
        f"{path}:{number} has {len(line)} columns"
        for path in python_files(*EVERYTHING)
        for number, line in enumerate(text(path).split("\n"), 1)
        if len(line) > MAX_COLUMNS
    )
    expect_none(f"lines over {MAX_COLUMNS} columns", long_lines)


def test_functions_fit() -> None:
    def long_functions() -> Iterator[str]:
        for path in python_files(*EVERYTHING):
            for node in nodes(path):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    size = (node.end_lineno or 0) - node.lineno + 1
                    if size > MAX_FUNCTION_LINES and f"{path}:{node.name}" not in LONG_FUNCTIONS:
                        yield f"{path}:{node.lineno} {node.name} has {size} lines"

    expect_none(f"functions over {MAX_FUNCTION_LINES} lines", long_functions())


def test_modules_fit() -> None:
    sizes = ((path, text(path).count("\n")) for path in python_files("kafkapy", "dev", "scripts"))
    long_modules = (
        f"{path} has {size} lines"
        for path, size in sizes
        if size > MAX_MODULE_LINES and path not in LONG_MODULES
    )
    expect_none(f"modules over {MAX_MODULE_LINES} lines", long_modules)


def test_exceptions_are_still_needed() -> None:
    named = {*LONG_MODULES, *CATCH_ALL, *MAY_SLEEP, *TESTED_ELSEWHERE, *USED_BY_NAME}
    gone = sorted(path for path in named if not (ROOT / path).exists())
    expect_none("named exceptions for files that are not there", gone)
    unused = [path for path in CATCH_ALL if not any(broad_handlers(path))]
    unused += [path for path in MAY_SLEEP if not SLEEPS & {name for _, name in calls(path)}]
    unused += [
        path for path in TESTED_ELSEWHERE if path.endswith(".py") and unit_test(path).exists()
    ]
    expect_none("named exceptions for files that need none", unused)


def test_every_module_says_what_it_is() -> None:
    bare = (path for path in python_files(*EVERYTHING) if not ast.get_docstring(tree(path)))
    expect_none("modules without a docstring", bare)


def test_first_lines_are_plain() -> None:
    """The first line of a docstring says what the thing is or does: a noun or a verb begins it."""
    riddle = re.compile(r"(who|whom|whose|what|how|let|have)\b", re.IGNORECASE)
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (
        f"{path}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"
        for path in python_files(*EVERYTHING)
        for node in nodes(path)
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and riddle.match(text)
    )
    expect_none("first lines that are riddles", found)


def test_public_definitions_are_annotated() -> None:
    def bare() -> Iterator[str]:
        for path in python_files("kafkapy"):
            for node in nodes(path):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.returns:
                    yield f"{path}:{node.lineno} {node.name} has no return type"

    expect_none("functions without a return type", bare())


def test_output_goes_through_cli_output() -> None:
    paths = python_files("kafkapy")
    expect_none("print belongs in cli/output", banned_calls(paths, lambda name: name == "print"))


def test_nothing_sleeps_to_synchronise() -> None:
    paths = tuple(path for path in python_files(*EVERYTHING) if path not in MAY_SLEEP)
    expect_none("wait for the event instead", banned_calls(paths, lambda name: name in SLEEPS))


SLEEPS = {"time.sleep", "sleep"}


def test_no_test_is_skipped() -> None:
    pattern = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b")
    skipped = (
        f"{path}:{number} {line.strip()}"
        for path in python_files("tests")
        if path != "tests/test_tidy.py"
        for number, line in enumerate(text(path).split("\n"), 1)
        if pattern.search(line)
    )
    expect_none("tests that do not run", skipped)


def broad_handlers(path: str) -> Iterator[str]:
    """The handlers of a module that catch every exception, and do not raise it again."""
    for node in nodes(path):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            tidies_up = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if caught in ("everything", "Exception", "BaseException") and not tidies_up:
                yield f"{path}:{node.lineno} catches {caught}"


def test_catch_all_only_where_named() -> None:
    paths = [path for path in python_files("kafkapy") if path not in CATCH_ALL]
    expect_none("catch-all handlers", [found for path in paths for found in broad_handlers(path)])


def test_any_is_explicit_only_where_named() -> None:
    counts = {
        path: text(path).count("type: ignore[explicit-any]") for path in python_files("kafkapy")
    }
    allowed = {path: count for path, (count, _) in EXPLICIT_ANY.items()}
    assert {path: count for path, count in counts.items() if count} == allowed
    rule = tomllib.loads(text("pyproject.toml"))["tool"]["mypy"]["overrides"]
    checked = [each["module"] for each in rule if each.get("disallow_any_explicit")]
    packages = ("controller", "coordinator", "replication", "server.api", "storage")
    assert checked == [[f"kafkapy.{package}.*" for package in packages]]


def test_nothing_is_left_to_do() -> None:
    marker = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
    left = (
        f"{path}:{number} {line.strip()}"
        for path in python_files("kafkapy", "dev", "scripts")
        for number, line in enumerate(text(path).split("\n"), 1)
        if marker.search(line)
    )
    expect_none("unfinished work", left)


def unit_test(path: str) -> Path:
    """The place of a module's test file below tests/unit."""
    module = Path(path).relative_to("kafkapy")
    return ROOT / "tests/unit" / module.parent / f"test_{module.stem}.py"


def has_test_file(path: str) -> bool:
    """Whether a module has a test file below tests/unit, or another one of its name."""
    module, mirrored = Path(path).relative_to("kafkapy"), unit_test(path)
    real = [Path("tests", folder) for folder in (module.parts[0], "integration", "security")]
    # Beside others a name may say its room: test_kazoo_adapter.py.
    names = (mirrored.name, f"test_{module.parent.name}_{module.stem}.py")
    scenarios = ROOT / "tests/scenarios" / module.parent.name / f"{module.stem}.txt"
    homes = [mirrored, scenarios, *(ROOT / folder / each for folder in real for each in names)]
    return any(home.exists() for home in homes)


def test_every_module_has_its_test_file() -> None:
    untested = (
        path
        for path in python_files("kafkapy")
        if Path(path).name != "__init__.py"
        and not path.startswith(tuple(TESTED_ELSEWHERE))
        and not has_test_file(path)
    )
    expect_none("modules without their test file", untested)


def test_every_module_is_used() -> None:
    def words() -> Iterator[str]:
        for path in (*python_files("kafkapy"), *ENTRY_MODULES):
            for node in nodes(path):
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)
                elif isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value  # the lazy tables name modules as strings

    used = {*words(), *map(module_of, COMMANDS)}
    unused = (
        path
        for path in python_files("kafkapy")
        if Path(path).name not in ("__init__.py", "__main__.py")
        and not path.startswith(tuple(USED_BY_NAME))
        and path.removesuffix(".py").replace("/", ".") not in used
    )
    expect_none("modules that nothing imports", unused)


def test_links_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
    documents = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    documents += sorted((ROOT / "docs").rglob("*.md"))
    dead = (
        f"{path.relative_to(ROOT)}: {target}"
        for path in documents
        for target in link.findall(path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    )
    expect_none("links to files that are not there", dead)


def test_no_text_installs_another_project() -> None:
    """The package of this name on PyPI is another project: users must install from a clone."""
    texts = [*(ROOT / "kafkapy").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    wrong = re.compile(r"kafkapy\[|install '?kafkapy\b")
    assert [str(path) for path in texts if wrong.search(path.read_text())] == []


def test_prose_fits() -> None:
    """Lines of paragraphs and lists, not those of code and tables."""

    def long_lines() -> Iterator[str]:
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            for block in re.split(r"^ *```.*?^ *```$", path.read_text(), flags=re.S | re.M):
                prose = re.sub(r"<!-- generated.*?<!-- end -->", "", block, flags=re.S)
                for line in prose.splitlines():
                    if len(line) > MAX_COLUMNS and not line.lstrip().startswith(("|", "!", "#")):
                        yield f"{path.relative_to(ROOT)}: {line[:60]}..."

    expect_none(f"lines of prose over {MAX_COLUMNS} columns", long_lines())


DECISIONS = ROOT / "docs" / "decisions"
EVIDENCE = ROOT / "docs" / "evidence"
# Words that only this project's authors would understand.
PRIVATE_WORDS = re.compile(
    r"\b(lanes?|(short|long) way|zygote|last life|carried out|park(s|ed|ing)?|told)\b"
)


def records() -> list[Path]:
    return sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= MAX_COLUMNS


def test_a_decision_record_is_a_page() -> None:
    def long_records() -> Iterator[str]:
        for path in records():
            lines = path.read_text().splitlines()
            if len(lines) > MAX_RECORD_LINES:
                yield f"{path.name} has {len(lines)} lines: move measurements to docs/evidence"
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS:
                    yield f"{path.name}:{number} has {len(line)} columns"

    expect_none(f"records over {MAX_RECORD_LINES} lines of {MAX_COLUMNS} columns", long_records())


def test_a_decision_record_begins_with_its_conclusion() -> None:
    """A title with the record's number, then a paragraph: We do X. Reason: Y. Rejected: Z."""
    conclusion = re.compile(r"# (\d+)\. [^\n]+\n{2,3}We (?:[^\n]+\n)+")

    def others() -> Iterator[str]:
        for path in records():
            found = conclusion.match(path.read_text())
            words = " ".join(found[0].split()) if found else ""
            if not found or int(found[1]) != int(path.name[:4]):
                yield f"{path.name} does not begin with its number and conclusion"
            elif "Reason: " not in words or "Rejected: " not in words:
                yield f"{path.name}: the first paragraph lacks the reason or the alternative"

    expect_none("records without their conclusion first", others())


def test_the_index_of_decisions_is_complete() -> None:
    row = re.compile(r"^\| \[(\d+)\]\((\S+)\) \| (.+) \|$", re.M)
    listed = [tuple(found) for found in row.findall((DECISIONS / "README.md").read_text())]
    there = []
    for path in records():
        number, title = path.read_text().splitlines()[0].removeprefix("# ").split(". ", 1)
        there.append((number, path.name, title))
    assert listed == there


def test_evidence_belongs_to_a_record() -> None:
    """Each numbered page has its record's name, and the two link to each other."""
    wrong = []
    for path in sorted(EVIDENCE.glob("[0-9]*.md")):
        record = DECISIONS / path.name
        if not record.exists() or f"(../evidence/{path.name})" not in record.read_text():
            wrong.append(f"no record links to docs/evidence/{path.name}")
        if f"(../decisions/{path.name})" not in path.read_text():
            wrong.append(f"docs/evidence/{path.name} does not link to its record")
    expect_none("evidence without a record", wrong)


def test_records_have_no_private_words() -> None:
    found = (
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*sorted(DECISIONS.glob("*.md")), *sorted(EVIDENCE.glob("*.md"))]
        for match in PRIVATE_WORDS.finditer(path.read_text())
    )
    expect_none("private words", found)


def test_records_name_files_that_are_there() -> None:
    there = {Path(path).name for path in python_files(*EVERYTHING)}
    gone = (
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*records(), *sorted(EVIDENCE.glob("*.md"))]
        for name in re.findall(r"`(?:[\w./]*/)?(\w+\.py)`", path.read_text())
        if name not in there
    )
    expect_none("files that are not in the repository", gone)


MUTABLE = {"dict", "list", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict"}
MUTABLE |= {"WeakSet", "WeakKeyDictionary", "WeakValueDictionary", "count"}
MUTATES = {"append", "add", "update", "pop", "setdefault", "clear", "extend", "remove", "discard"}
MUTATES |= {"insert", "popitem", "appendleft", "popleft"}


def last_name(node: ast.AST) -> str:
    """`count` of `count`, `count()` and `itertools.count`; empty for other expressions."""
    if isinstance(node, ast.Call | ast.Subscript):
        return last_name(node.func if isinstance(node, ast.Call) else node.value)
    return getattr(node, "id", "") or getattr(node, "attr", "")


def containers(path: str) -> set[str]:
    """The names of a module that hold what can change."""
    found = set()
    literals = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(value, literals) or (
            isinstance(value, ast.Call) and last_name(value) in MUTABLE
        ):
            found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return found


def changed_state(path: str) -> Iterator[str]:
    """The names of a module whose values functions change: globals, containers, caches."""
    names = containers(path)
    for node in nodes(path):
        if isinstance(node, ast.Global):
            yield from node.names
        elif isinstance(node, ast.FunctionDef):
            if any(last_name(each) in ("cache", "lru_cache") for each in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in names and node.func.attr in MUTATES:
                yield owner.id
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name) and node.value.id in names:
                yield node.value.id
        elif isinstance(node, ast.Call) and last_name(node) == "next":
            yield from (
                each.id for each in node.args if isinstance(each, ast.Name) and each.id in names
            )


def test_state_of_modules_has_an_owner() -> None:
    """Threads of a free-threaded interpreter would change it at the same time (decision 54)."""
    found = {f"{path} {name}" for path in python_files("kafkapy") for name in changed_state(path)}
    expect_none("state of a module that changes", sorted(found - MODULE_STATE.keys()))
    expect_none("not changed any more", sorted(MODULE_STATE.keys() - found))
