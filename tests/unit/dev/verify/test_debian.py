"""The parts of scripts/newcomer --debian that need no machine of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.verify import debian
from tests.harness.tools.documents import COMMANDS, blocks, installation, script

TARGETS = """\
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm contrib
http://mirror.example/debian/ bookworm-updates main
http://mirror.example/debian/ bookworm-backports main
http://mirror.example/debian-security/ bookworm-security main
https://tools.example/apt cloud-bookworm main
https://node.example/20 nodistro main
"""
DUMP = """\
APT::Architecture "amd64";
Acquire "";
Acquire::cdrom::mount "/media/cdrom/";
Acquire::Check-Valid-Until "false";
Acquire::http::Proxy "http://127.0.0.1:3142";
Acquire::https::CAInfo "/etc/ssl/ours.pem";
Acquire::IndexTargets::deb::Packages::MetaKey "$(COMPONENT)/Packages";
DPkg::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb || true";
"""
PAGES = [debian.README, *debian.tutorials()]


def test_only_the_release_and_its_updates_are_taken_from_apt() -> None:
    assert debian.debian_sources(TARGETS, "bookworm") == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    ]
    assert debian.debian_sources(TARGETS, "trixie") == []


def test_of_apts_settings_those_that_reach_the_mirror() -> None:
    assert debian.apt_settings(DUMP) == [
        'APT::Get::Assume-Yes "true";',
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://127.0.0.1:3142";',
        'Acquire::https::CAInfo "/etc/ssl/ours.pem";',
    ]


def test_of_pips_settings_those_that_are_no_directories_of_this_machine() -> None:
    kept = {
        "PIP_INDEX_URL": "http://index.example/simple",
        "PIP_CERT": "/etc/ssl/ours.pem",
        "https_proxy": "http://127.0.0.1:3128",
    }
    others = {
        "PIP_CACHE_DIR": "/home/ann/pip",
        "PIP_FIND_LINKS": "/opt/wheels",
        "PYTHONPATH": "/home/ann/kafkapy",
        "VIRTUAL_ENV": "/home/ann/.venv",
    }
    assert debian.pip_settings({**kept, **others}) == kept


def test_files_of_the_user_become_those_of_the_machines_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    places = dict(debian.settings_files())
    assert places[tmp_path / ".config/pip/pip.conf"] == "root/.config/pip/pip.conf"
    assert not any(place.startswith("/") for place in places.values())


def test_the_readme_names_every_tutorial_and_its_topic_comes_first() -> None:
    found = sorted((debian.ROOT / "docs" / "tutorials").glob("*.md"))
    assert sorted(debian.tutorials()) == [f"docs/tutorials/{path.name}" for path in found]
    assert debian.tutorials()[0].endswith("first-topic.md")


def test_a_look_is_the_demo_and_not_the_test_suite() -> None:
    assert [line.split("#")[0].strip() for line in debian.try_it().splitlines()] == ["scripts/demo"]


def test_the_readme_says_all_that_an_empty_machine_needs() -> None:
    """Debian's Python has no pip, and refuses to install packages outside of an environment."""
    apt, make, activate, install = installation(debian.README)
    assert apt.startswith("apt-get update && apt-get install python3-venv")
    assert make.startswith("python3 -m venv .venv")
    assert activate == ". .venv/bin/activate"
    assert install.startswith("pip install .")
    assert debian.activation(debian.README) == [activate]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_run_once(page: str) -> None:
    run = [
        line
        for block in blocks(page)
        if block.language in COMMANDS and block.mark is None
        for line in block.text.splitlines()
    ]
    others = [line for line in script(page).splitlines() if not line.startswith("echo '=== ")]
    assert sorted(filter(None, run)) == sorted(filter(None, [*installation(page), *others]))
    # A command of several lines would lose its first one.
    assert not [line for line in installation(page) if line.endswith(("\\", "|", "&&"))]


def test_the_pages_lead_to_a_topic_a_cluster_and_a_table() -> None:
    commands = "".join(map(script, PAGES))
    for expected in ("topics --bootstrap-server", "cluster kill $leader", "spark-submit"):
        assert expected in commands
    shown = "\n".join(block.text for page in PAGES for block in blocks(page))
    assert "+-----+-----+\n|level|lines|\n" in shown
