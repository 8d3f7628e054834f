"""Hooks of MkDocs: pages that lie outside docs/, and the list of decisions.

`mkdocs.yml` names this file. SECURITY.md and CHANGELOG.md stay at the root of the repository, where
its readers look for them, and are pages of the site too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT: Final = Path(__file__).parents[2]
FROM_THE_ROOT: Final = ("SECURITY.md", "CHANGELOG.md")
_LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)")


def on_config(config: Any) -> Any:
    """Add every decision, and the measurements behind it, to the navigation, from the
    directories."""
    for section in config["nav"]:
        if isinstance(section, dict) and "Decisions" in section:
            section["Decisions"] = ["decisions/README.md", *_numbered("decisions")]
        elif isinstance(section, dict) and "Evidence" in section:
            section["Evidence"] += _numbered("evidence")
    return config


def _numbered(directory: str) -> list[str]:
    """The pages that have the number of a decision."""
    pages = sorted((ROOT / "docs" / directory).glob("[0-9]*.md"))
    return [f"{directory}/{path.name}" for path in pages]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie at the root."""
    from mkdocs.structure.files import File

    for name in FROM_THE_ROOT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between docs/ and the root into links between pages of the site."""
    path = page.file.src_uri
    return site_links(markdown, path if path in FROM_THE_ROOT else f"docs/{path}")


def site_links(markdown: str, path: str) -> str:
    """The text of the file `path` of the repository, with links as the site's pages have them."""
    home = os.path.dirname(path)
    here = os.path.dirname(_in_site(path))

    def moved(link: re.Match[str]) -> str:
        if "://" in link[1]:
            return link[1]
        target = _in_site(os.path.normpath(os.path.join(home, link[1])))
        return os.path.relpath(target, here or ".")

    return _LINK.sub(moved, markdown)


def _in_site(path: str) -> str:
    return path.removeprefix("docs/")
