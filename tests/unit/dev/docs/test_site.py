"""The site of docs/: it builds without a warning, and a dead link is one."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from dev.docs.main import ROOT, build_site
from dev.docs.site import on_config, site_links
from tests.harness.plugins import unchecked


def has_mkdocs() -> bool:
    found = find_spec("mkdocs") is not None and find_spec("material") is not None
    if not found:
        unchecked.note("the site of docs/", "mkdocs-material is not installed")
    return found


def test_the_site_builds_and_refers_to_no_other_host(tmp_path: Path) -> None:
    if not has_mkdocs():
        return
    assert build_site(tmp_path / "site") == 0
    for page in ("index.html", "SECURITY.html", "reference/commands.html"):
        text = (tmp_path / "site" / page).read_text()
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\"\s>]+)", text)
        assert not loaded, page


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    if not has_mkdocs():
        return
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "index.md"
    settings = tmp_path / "mkdocs.yml"
    settings.write_text("site_name: small\n")
    page.write_text("[all is well](index.md)\n")
    assert build_site(tmp_path / "site", settings) == 0
    page.write_text("[dead](gone.md)\n")
    assert build_site(tmp_path / "site", settings) != 0


def test_links_between_docs_and_the_root_become_links_of_the_site() -> None:
    assert site_links("[a](../../SECURITY.md#x)", "docs/how-to/a.md") == "[a](../SECURITY.md#x)"
    assert site_links("[a](docs/evidence/b.md)", "SECURITY.md") == "[a](evidence/b.md)"
    assert site_links("[a](b.md) [c](#d)", "docs/how-to/a.md") == "[a](b.md) [c](#d)"
    assert site_links("[a](https://b.example/c)", "docs/a.md") == "[a](https://b.example/c)"


def test_every_decision_is_in_the_navigation() -> None:
    [section] = on_config({"nav": [{"Decisions": []}]})["nav"]
    pages = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")}
    assert {Path(page).name for page in section["Decisions"]} == pages
