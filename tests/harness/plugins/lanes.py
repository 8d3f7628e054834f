"""The order of the tests when pytest-xdist runs several at once: a plugin of pytest.

The tests of a file run one after the other, since they share its broker, unless each has a cluster
of its own; those of Spark share a JVM. The longest begin first, so that no long test is left for
the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

LONGEST_FIRST: Final[tuple[str, ...]] = (
    "tests/spark/",
    "tests/integration/test_system.py",
    "tests/integration/test_real_clients.py",
    "tests/integration/test_documents.py",
    "tests/integration/test_consumer_groups.py",
    "tests/security/test_migration.py",
    "tests/integration/test_mixed_cluster.py",
    "tests/integration/test_transactions_cluster.py",
    "tests/security/test_oauth.py",
    "tests/integration/test_share_groups.py",
    "tests/integration/test_transactions_v2.py",
    "tests/integration/test_chaos.py",
    "tests/conformance/test_tools.py",
    "tests/security/test_secure_cluster.py",
    "tests/integration/test_growing_cluster.py",
    "tests/integration/test_own_zookeeper.py",
    "tests/integration/test_stop_without_zookeeper.py",
    "tests/security/",
    "tests/integration/",
    "tests/simulation/test_seeds.py",
    "tests/cli/",
)
"""Files, the longest first; files that are not listed follow."""

INDEPENDENT_FILES: Final = ("tests/security/test_secure_cluster.py",)
"""Files whose tests share nothing."""

SHARING_FOLDERS: Final = ("tests/spark/",)
"""Folders whose files share resources that are expensive to start."""

COMPUTING_WORKERS: Final = ("gw0", "gw1")
"""Workers that take lanes from the end of the queue. These lanes compute, while the lanes at its
head wait for brokers and clients, so that neither part of the run leaves a processor idle."""


def lane(nodeid: str) -> str:
    """The name of a test's lane. Tests of one lane run one after the other."""
    file = nodeid.partition("::")[0]
    if file in INDEPENDENT_FILES:
        return nodeid
    return next((folder for folder in SHARING_FOLDERS if file.startswith(folder)), file)


def rank(nodeid: str) -> int:
    """The place in the order of the tests; 0 begins first."""
    ranks = (place for place, start in enumerate(LONGEST_FIRST) if nodeid.startswith(start))
    return next(ranks, len(LONGEST_FIRST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):
        """Hands out lanes in the order of the collection."""

        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            if node.gateway.id in COMPUTING_WORKERS:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def _reschedule(self, node: Any) -> None:
            """Give a worker only one test to run and one to run next: further tests would wait
            behind a long one."""
            if node.shutting_down:
                return
            if not self.workqueue:
                node.shutdown()
            elif self._pending_of(self.assigned_work[node]) < 2:
                self._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Lanes(config, log)
