"""Imports between packages follow this table. It is the shape of the project: change it with care.

A pure package holds decisions and touches nothing (no loop, socket, file, clock, thread or chance);
a shell touches and decides nothing. Wire messages stay in `protocol`, `client`, `admin` and the
shells of `server`; a wire version never reaches a state machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from dev.docs.layered_graph import reachable
from kafkapy.cli.framework.command_table import COMMANDS, module_of

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.usefixtures("uncollected")

MAY_IMPORT: dict[str, set[str]] = {
    "": {"cli", "testing"},  # `python -m kafkapy`, pytest's plug-in
    "common": set(),
    "record": {"common"},
    "protocol": {"security", "common"},
    "security": {"common"},
    "zk": {"security", "common"},
    "metadata": {"security", "common"},
    "storage": {"record", "common"},
    "replication": {"storage", "record", "common"},
    "controller": {"zk", "common"},
    "coordinator": {"record", "common"},
    "client": {"protocol", "record", "security", "common"},
    "admin": {"client", "protocol", "security", "common"},
    "tools": {"admin", "client", "storage", "zk", "record", "security", "common"},
    "cli": {"tools", "admin", "client", "security", "common"},
    "spark": {"schemas", "client", "record", "common"},
    "schemas": {"admin", "client", "record", "common"},
    "testing": {"tools", "admin", "client", "common"},
    "server": {
        *("controller", "coordinator", "replication", "metadata", "storage"),
        *("zk", "protocol", "record", "security", "common"),
    },
}
# Only inside the function that needs it, so that no other command pays for it.
MAY_IMPORT_LATE: dict[str, set[str]] = {
    "cli": {"server", "spark", "schemas"},
    "testing": {"schemas"},
    "tools": {"schemas"},
}

PURE = (
    *("common", "security", "record", "protocol", "zk", "storage"),
    *("metadata", "replication", "controller", "coordinator"),
)
WORLD = {
    *("gssapi", "http", "urllib.request"),
    *("asyncio", "concurrent", "kazoo", "multiprocessing", "os", "random", "selectors"),
    *("signal", "socket", "subprocess", "threading", "time", "uvloop"),
}
# The adapters of pure packages: Kerberos, HTTP, the environment, the machine, accepting, tasks that
# begin anew, the file system, kazoo with what its session needs, and the event loop of a ZooKeeper
# server.
ADAPTERS = {
    "kafkapy/security/kerberos/gss_library.py": {"gssapi", "threading"},
    "kafkapy/security/oauth/http_adapter.py": {"http", "time", "urllib.request"},
    "kafkapy/common/accept_loop.py": {"asyncio", "os", "socket"},
    "kafkapy/common/java_environment.py": {"os"},
    "kafkapy/common/lasting_work.py": {"asyncio"},
    "kafkapy/common/service_manager.py": {"os", "socket"},
    "kafkapy/common/system.py": {"os", "random", "time"},
    "kafkapy/storage/filesystem.py": {"os", "concurrent"},
    "kafkapy/zk/kazoo/adapter.py": {"kazoo", "asyncio"},
    "kafkapy/zk/kazoo/session.py": {"kazoo", "asyncio"},
    "kafkapy/zk/kazoo/handler.py": {"kazoo", "socket"},
    "kafkapy/zk/service/event_loop.py": {"asyncio", "socket"},
}

# A person's shell on any znode, and transfers of whole trees, with verbs that Kafka's port does not
# have.
ANY_ZNODE = {
    f"kafkapy/tools/zookeeper/{name}.py"
    for name in ("shell", "transfer", "tree_reader", "tree_writer")
}

# The rooms of the server, from the top: each imports only rooms below it, for types as well.
ROOMS = (
    *("root", "handlers", "api", "observability", "admin", "coordinators", "cluster", "changes"),
    *("replicas", "interbroker", "network", "security", "quotas", "requests", "counts", "config"),
)
# The rooms of ZooKeeper's package: each imports only these others, beside the port `zookeeper`.
ZK_ROOMS: dict[str, set[str]] = {
    "embedded": set(),
    "kazoo": {"stores"},
    "service": {"embedded", "wire"},
    "stores": {"embedded"},
    "wire": set(),
}

# Folders of peers that never import each other: one API or one command each.
PEERS: dict[str, set[str]] = {
    "kafkapy.server.api.handlers": {
        f"kafkapy.server.api.handlers.{path.stem}"
        for path in (ROOT / "kafkapy" / "server" / "api" / "handlers").glob("[!_]*.py")
    },
    "kafkapy.cli": set(map(module_of, COMMANDS)),
}


class Import(NamedTuple):
    """One imported dotted name, where, and whether a function body holds it."""

    path: str
    line: int
    target: str
    late: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.target}"


OURS = ("kafkapy", "dev", "tests")


def sources(*folders: str) -> list[str]:
    """Every module of these folders, of the package if none is named, relative to the root of the
    repository."""
    found = [path for folder in folders or OURS[:1] for path in (ROOT / folder).rglob("*.py")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def targets(node: ast.stmt, path: str) -> list[str]:
    """The dotted names a statement imports; `from a import b` counts as a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = list(Path(path).parent.parts[: len(Path(path).parent.parts) - node.level + 1])
        module = ".".join([*(base if node.level else []), *([node.module] if node.module else [])])
        return [f"{module}.{alias.name}" for alias in node.names]
    return []


def imports_in(node: ast.AST, path: str, late: bool = False) -> Iterator[Import]:
    """Every import below `node`, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            for target in targets(child, path):
                yield Import(path, child.lineno, target, late)
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imports_in(child, path, late or is_function)


@cache
def imports(path: str) -> tuple[Import, ...]:
    return tuple(imports_in(ast.parse((ROOT / path).read_text(), path), path))


def package_of(path: str) -> str:
    """ "storage" for kafkapy/storage/unified_log.py, "" for the root package."""
    parts = Path(path).parts
    return parts[1] if len(parts) > 2 else ""


def allowed(found: Import) -> bool:
    """Whether the table draws this import; imports from outside kafkapy pass."""
    parts = found.target.split(".")
    if parts[0] != "kafkapy":
        return True
    here = package_of(found.path)
    if len(parts) < 2 or parts[1] == here or not (ROOT / "kafkapy" / parts[1]).is_dir():
        return True
    late = MAY_IMPORT_LATE.get(here, set()) if found.late else set()
    return parts[1] in MAY_IMPORT.get(here, set()) | late


@cache
def module_of(target: str) -> str:
    """The path of the module that an imported name is, or is in; "" if it is not of ours."""
    parts = target.split(".")
    while parts and parts[0] in OURS:
        for path in ("/".join(parts) + ".py", "/".join(parts) + "/__init__.py"):
            if (ROOT / path).exists():
                return path
        parts.pop()
    return ""


@cache
def graph(*folders: str) -> dict[str, set[str]]:
    """The modules of these folders that each module imports, late imports and types included."""
    known = sources(*folders)
    return {
        path: {module_of(found.target) for found in imports(path)} & set(known) - {path}
        for path in known
    }


def loops(edges: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach each other."""
    # Whoever imports nothing, or is imported by nobody, is in no loop: that leaves few.
    left = dict(edges)
    while True:
        named = set().union(*left.values()) if left else set()
        kept = {
            path: found & left.keys()
            for path, found in left.items()
            if path in named and found & left.keys()
        }
        if kept == left:
            break
        left = kept
    reach = {path: reachable(left, path) for path in left}
    groups: list[set[str]] = []
    for path in left:
        if path in reach[path] and not any(path in group for group in groups):
            groups.append({other for other in reach[path] if path in reach[other]})
    return groups


def room_of(path: str) -> str:
    """The room of a server's module."""
    parts = Path(path).parts
    if parts[:2] != ("kafkapy", "server") or path == "kafkapy/server/__init__.py":
        return ""
    if len(parts) == 3:
        return "root"
    return "handlers" if parts[3] in ("handlers", "handler_table.py") else parts[2]


def touched(target: str) -> set[str]:
    """A module as the sets above may name it: by its package, or by two names."""
    return {target.split(".")[0], ".".join(target.split(".")[:2])}


def test_every_package_is_in_the_table() -> None:
    packages = {package_of(path) for path in sources()} - {""}
    assert packages <= set(MAY_IMPORT), "a package that the table does not know"


def test_imports_follow_the_table() -> None:
    wrong = [str(found) for path in sources() for found in imports(path) if not allowed(found)]
    assert not wrong, "\n".join(["imports the table forbids:", *wrong])


def test_the_table_has_no_arrow_that_nothing_needs() -> None:
    used = {
        (package_of(path), found.target.split(".")[1], found.late)
        for path in sources()
        for found in imports(path)
        if found.target.startswith("kafkapy.")
    }
    arrows = {(here, there) for here, targets in MAY_IMPORT.items() for there in targets}
    assert arrows <= {(here, there) for here, there, _ in used}
    late = {(here, there, True) for here, targets in MAY_IMPORT_LATE.items() for there in targets}
    assert late <= used


def test_packages_say_what_they_may_import() -> None:
    """A package's docstring may name what it imports: then all of it, as in the table."""
    wrong = []
    for package, targets in MAY_IMPORT.items():
        path = ROOT / "kafkapy" / package / "__init__.py"
        text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
        said = re.search(r"May import ([^.]*)\.", text)
        if said and set(re.findall(r"`(\w+)`", said[1])) != targets:
            wrong.append(f"kafkapy.{package}: {said[0]}")
    assert not wrong, "\n".join(["docstrings that contradict the table:", *wrong])


def is_of_tests(path: str) -> bool:
    return path.startswith("tests/")


def test_no_loop_of_files() -> None:
    """The simulator's modules, which are one program, may import each other."""
    found = [group for group in loops(graph(*OURS)) if not all(map(is_of_tests, group))]
    assert not found, "\n".join("a loop: " + ", ".join(sorted(group)) for group in found)


def test_rooms_import_downwards() -> None:
    upwards = {
        (room_of(path), room_of(target))
        for path, targets in graph().items()
        for target in targets
        if room_of(path) in ROOMS[1:]
        and room_of(target)
        and room_of(target) not in ROOMS[ROOMS.index(room_of(path)) :]
    }
    assert not upwards


def test_few_modules_of_the_server_are_in_no_room() -> None:
    alone = {path.stem for path in (ROOT / "kafkapy" / "server").glob("[!_]*.py")}
    assert alone == {"broker", "process", "system", "maintenance", "scheduler", "gc_tuning"}


def test_rooms_of_zk_import_what_they_may() -> None:
    def zk_room(path: str) -> str:
        parts = Path(path).parts
        return parts[2] if parts[:2] == ("kafkapy", "zk") and len(parts) > 3 else ""

    assert {zk_room(path) for path in sources()} - {""} == set(ZK_ROOMS)
    wrong = [
        f"{path} imports {target}"
        for path, targets in graph().items()
        for target in targets
        if zk_room(path)
        and zk_room(target)
        and zk_room(target) not in {zk_room(path), *ZK_ROOMS[zk_room(path)]}
    ]
    assert not wrong, "\n".join(["rooms of zk that import others:", *wrong])


def test_pure_packages_touch_nothing() -> None:
    wrong = [
        str(found)
        for path in sources()
        if package_of(path) in PURE
        for found in imports(path)
        if touched(found.target) & (WORLD - ADAPTERS.get(path, set()))
    ]
    assert not wrong, "\n".join(["pure packages that touch the world:", *wrong])


def test_only_the_adapter_imports_kazoo() -> None:
    wrong = [
        str(found)
        for path in sources()
        if "kazoo" not in ADAPTERS.get(path, set()) and path not in ANY_ZNODE
        for found in imports(path)
        if found.target.split(".")[0] == "kazoo"
    ]
    assert not wrong, "\n".join(["kazoo belongs in zk/kazoo/:", *wrong])


def test_spark_entry_modules_import_only_spark() -> None:
    wrong = [
        str(found)
        for path in ("pyspark_kafkapy.py", "pyspark_kafkapy_segments.py")
        for found in imports(path)
        if found.target.startswith("kafkapy.") and not found.target.startswith("kafkapy.spark")
    ]
    assert not wrong, "\n".join(wrong)


def test_peers_do_not_import_each_other() -> None:
    wrong = []
    for peers in PEERS.values():
        for path in sources():
            module = path.removesuffix(".py").replace("/", ".")
            for found in imports(path) if module in peers else ():
                named = {found.target, found.target.rpartition(".")[0]}
                wrong += [str(found)] * bool(named & (peers - {module}))
    assert not wrong, "\n".join(["handlers and commands never import each other:", *wrong])


def test_the_walk_sees_late_and_relative_imports() -> None:
    text = "from . import beside\ndef f():\n    from kafkapy.server.process import run\n"
    found = list(imports_in(ast.parse(text), "kafkapy/cli/server.py"))
    assert [(item.target, item.late) for item in found] == [
        ("kafkapy.cli.beside", False),
        ("kafkapy.server.process.run", True),
    ]
    assert allowed(found[1])
    assert not allowed(found[1]._replace(late=False))
