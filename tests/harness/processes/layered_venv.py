"""A virtual environment for a copy of the sources, on top of the packages of this one."""

from __future__ import annotations

import hashlib
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

from pip._vendor.distlib.scripts import ScriptMaker, enquote_executable


def make_layered_venv(root: Path) -> Path:
    """Make `root/.venv` with the package of `root`. Returns the path of its `kafkapy`.

    It is quick and needs no network: dependencies come from the environment that runs this. The
    console script is written by the part of pip that always writes it.
    """
    directory = root / ".venv"
    venv.create(directory, symlinks=True)
    below = [path for path in sys.path if Path(path).name == "site-packages"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    layer = directory / "lib" / version / "site-packages" / "layer.pth"
    layer.write_text("".join(f"{path}\n" for path in (root, *below)))
    # Scripts and jars of pyspark are used by their paths, which must be below `root`, too.
    pyspark = find_spec("pyspark")
    if pyspark is not None and pyspark.origin is not None:
        (layer.parent / "pyspark").symlink_to(Path(pyspark.origin).parent)

    maker = ScriptMaker(None, str(directory / "bin"))
    maker.executable = enquote_executable(str(directory / "bin" / "python"))
    maker.variants = {""}
    maker.set_mode = True
    maker.make("kafkapy = kafkapy.cli.main:main")

    # The mark of a complete installation for scripts/_env.sh.
    stamp = hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest()
    (directory / ".installed-spark,dev").write_text(f"{stamp}  -")
    return directory / "bin" / "kafkapy"
