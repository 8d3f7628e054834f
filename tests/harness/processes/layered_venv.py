"""A virtual environment for a copy of the sources, on top of the packages of this one."""

from __future__ import annotations

import hashlib
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

from pip._vendor.distlib.scripts import ScriptMaker, enquote_executable


def make_layered_venv(root: Path) -> Path:
    """Make `root/.venv` with the package of `root`; its `kafkapy`.

    Quick, and without a network: what the package depends on is taken from the environment that
    runs this. The console script is written by the part of pip that always writes it.
    """
    directory = root / ".venv"
    venv.create(directory, symlinks=True)
    below = [path for path in sys.path if Path(path).name == "site-packages"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    layer = directory / "lib" / version / "site-packages" / "layer.pth"
    layer.write_text("".join(f"{path}\n" for path in (root, *below)))
    # Its scripts and jars are used by their paths, which are to be below `root` too.
    pyspark = find_spec("pyspark")
    if pyspark is not None and pyspark.origin is not None:
        (layer.parent / "pyspark").symlink_to(Path(pyspark.origin).parent)

    maker = ScriptMaker(None, str(directory / "bin"))
    maker.executable = enquote_executable(str(directory / "bin" / "python"))
    maker.variants = {""}
    maker.set_mode = True
    maker.make("kafkapy = kafkapy.cli.main:main")

    # What scripts/_env.sh takes for installed.
    stamp = hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest()
    (directory / ".installed-spark,dev").write_text(f"{stamp}  -")
    return directory / "bin" / "kafkapy"
