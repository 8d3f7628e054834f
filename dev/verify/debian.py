"""README.md and the tutorials on an empty Debian machine: `scripts/newcomer --debian`.

debootstrap makes the machine: the packages that Debian requires, and apt. Two copies of it get a
clone of this repository's HEAD. One runs `scripts/demo`, as the README says, and installs all that
it needs. The other follows README.md and the tutorials that it names: on each page first the lines
that install, then the other commands, in a network namespace that has only the loopback interface.
The commands are those of the pages' blocks, and their output is compared with the pages.

Copied from this machine: Debian's mirror and the proxy, as its apt has them, the settings of its
pip, and its certificates. Kept in ~/.cache between runs: the empty machine, Debian's packages, and
the downloads of pip. Mounts and processes are in namespaces that end with the program.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from dev.report import ROOT
from dev.verify.leftovers import GRACE_S, marked, outlives
from tests.harness.tools.documents import blocks, difference, installation, script

LIMIT_S: Final = 20 * 60
README: Final = "README.md"
CLONE: Final = "root/kafkapy"  # below the root of the machine
MARK: Final = "KAFKAPY_DEBIAN"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The first process of the machine. It waits after the commands, so that processes that they left
# running can be found: the kernel ends these together with the first process.
FIRST: Final = f"""
cd /{CLONE}
{MARK}=$0 bash -euo pipefail /root/commands </dev/null >/root/printed 2>&1
echo $?
read -r _
"""
WITHOUT_NETWORK: Final = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")

# Settings of apt and pip that reach a mirror; directories of this machine are not among them.
APT_SETTINGS: Final = re.compile(r"Acquire::(?:Check-|Retries|https?::).*;")
PIP_SETTINGS: Final = re.compile(
    r"PIP_(?!CACHE_DIR|FIND_LINKS).+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|(?:https?|no)_proxy",
    re.IGNORECASE,
)
CERTIFICATES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")
TARGETS: Final = "$(REPO_URI) $(RELEASE) $(COMPONENT)"


def caches() -> Path:
    """Directory of the files that are kept between runs."""
    return Path.home() / ".cache"


def debian_sources(targets: str, codename: str) -> list[str]:
    """Lines for sources.list: those of apt's targets that are Debian's main and its updates."""
    main = re.compile(rf"\S+ {re.escape(codename)}(?:-updates|-security)? main")
    return [f"deb {line}" for line in dict.fromkeys(targets.splitlines()) if main.fullmatch(line)]


def apt_settings(dump: str) -> list[str]:
    """Lines for apt.conf, from those of `apt-config dump`."""
    found = [line for line in dump.splitlines() if APT_SETTINGS.fullmatch(line)]
    return ['APT::Get::Assume-Yes "true";', *found]  # the answer of the newcomer


def pip_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that name pip's index, and the certificates that pip trusts."""
    return {name: value for name, value in environment.items() if PIP_SETTINGS.fullmatch(name)}


def settings_files() -> Iterator[tuple[Path, str]]:
    """Files and directories of this machine that are copied, each with its path in the other."""
    yield Path("/etc/resolv.conf"), "etc/resolv.conf"
    for path in CERTIFICATES:
        yield Path(path), path.removeprefix("/")
    yield Path("/etc/pip.conf"), "etc/pip.conf"
    for path in (".config/pip/pip.conf", ".pip/pip.conf"):
        yield Path.home() / path, f"root/{path}"


def tutorials() -> list[str]:
    """The tutorials that the README names, in its order."""
    return re.findall(r"\((docs/tutorials/[\w-]+\.md)\)", (ROOT / README).read_text())


def try_it() -> str:
    """The README's commands to try kafkapy, without the test suite."""
    by = "dev/verify/newcomer.py"
    found = [block.text for block in blocks(README) if block.mark and block.mark["by"] == by]
    lines = "\n".join(found).splitlines()
    return "\n".join(line for line in lines if not line.startswith("scripts/test"))


def activation(page: str) -> list[str]:
    """The lines of a page that a reader repeats in each new terminal."""
    return [line for line in installation(page) if line.startswith(". ")]


class Debian:
    """The release of Debian that this machine has, and the settings that reach its mirror."""

    def __init__(self) -> None:
        release = platform.freedesktop_os_release()
        self.codename = release.get("VERSION_CODENAME", "")
        targets = _output("apt-get", "indextargets", "--format", TARGETS, "Created-By: Packages")
        self.sources = debian_sources(targets, self.codename)
        if release["ID"] != "debian" or not self.sources:
            raise SystemExit("newcomer: needs a Debian machine, whose apt names the mirror")
        self.mirror = self.sources[0].split()[1]
        self.apt_settings = apt_settings(_output("apt-config", "dump"))

    def empty(self) -> Path:
        """The root directory of an empty machine, made once."""
        key = hashlib.sha256(self.mirror.encode()).hexdigest()[:8]
        made = caches() / "kafkapy" / f"debian-{self.codename}-{key}"
        if made.is_dir():
            return made
        made.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{made.name}.", dir=made.parent))
        try:
            command = ["debootstrap", "--variant=minbase", self.codename, str(fresh), self.mirror]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise SystemExit(f"newcomer: debootstrap failed\n{_tail(done.stdout)}")
            fresh.chmod(0o755)
            fresh.rename(made)
        finally:
            subprocess.run(["rm", "-rf", "--one-file-system", str(fresh)], check=True)
        return made


class Machine:
    """An empty Debian machine with a clone of this repository, in a directory."""

    def __init__(self, directory: Path, debian: Debian) -> None:
        self.root = directory / "root"
        changes, work = directory / "changes", directory / "work"
        for each in (self.root, changes, work):
            each.mkdir(parents=True)
        layers = f"lowerdir={debian.empty()},upperdir={changes},workdir={work}"
        _mount("-t", "overlay", "-o", layers, "overlay", str(self.root))
        _mount("--rbind", "/dev", str(self.root / "dev"))
        _mount("-t", "tmpfs", "tmpfs", str(self.root / "dev" / "shm"))
        self._share(caches() / "kafkapy" / "debian-packages", "var/cache/apt/archives")
        self._share(caches() / "pip", "root/.cache/pip")
        self._configure(debian)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root / CLONE)], check=True)

    def run(self, commands: str, *, network: bool) -> tuple[bool, str]:
        """Run commands in a new shell. Returns whether all succeeded and ended, and the output."""
        mark, home = str(self.root), self.root / "root"
        (home / "commands").write_text(f"{commands}\n")
        (home / "printed").write_text("")
        enter = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        settings = {"HOME": "/root", "PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}
        shell = ["chroot", str(self.root), "bash", "-c", FIRST, mark]
        first = subprocess.Popen(
            [*(() if network else WITHOUT_NETWORK), *enter, *shell],
            env={**settings, **pip_settings(os.environ)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert first.stdin is not None
        assert first.stdout is not None
        try:
            ended, _, _ = select.select([first.stdout], [], [], LIMIT_S)
            status = first.stdout.readline().strip() if ended else f"no end within {LIMIT_S} s"
            found = marked({MARK: mark}) if status == "0" else ()
            left = [command for pid, command in found if outlives(pid, GRACE_S)]
            first.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                first.wait(GRACE_S if ended else 0)
        finally:
            first.kill()
            first.wait()
        printed = (home / "printed").read_text(errors="replace")
        endings = [f"status {status}", *(f"left running: {command}" for command in left)]
        return status == "0" and not left, "\n".join([printed.rstrip("\n"), *endings, ""])

    def _share(self, kept: Path, place: str) -> None:
        for each in (kept, self.root / place):
            each.mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(kept), str(self.root / place))

    def _configure(self, debian: Debian) -> None:
        """Copy the settings of this machine."""
        apt = self.root / "etc" / "apt"
        (apt / "sources.list").write_text("\n".join([*debian.sources, ""]))
        (apt / "apt.conf.d" / "90newcomer").write_text("\n".join([*debian.apt_settings, ""]))
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
        for source, place in settings_files():
            target = self.root / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.is_file():
                target.unlink(missing_ok=True)
                shutil.copyfile(source, target)


def follow(machine: Machine, page: str, active: list[str]) -> str | None:
    """Run a page's commands. Returns a message about the first that fails or prints something
    else."""
    installs = installation(page)
    if installs:
        succeeded, printed = _timed(machine, f"{page}, install", [*active, *installs], True)
        if not succeeded:
            return f"{page}: {_tail(printed)}"
    commands = [*(activation(page) or active), script(page)]
    succeeded, printed = _timed(machine, page, commands, False)
    return difference(page, printed) if succeeded else f"{page}: {_tail(printed)}"


def _timed(machine: Machine, title: str, lines: list[str], network: bool) -> tuple[bool, str]:
    started = time.monotonic()
    succeeded, printed = machine.run("\n".join(lines), network=network)
    _print_line(
        f"{title}: {'done' if succeeded else 'FAILED'} after {time.monotonic() - started:.0f} s"
    )
    return succeeded, printed


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _tail(printed: str) -> str:
    return "\n".join(printed.splitlines()[-40:])


def _print_line(line: str) -> None:
    print(f"newcomer: {line}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/newcomer --debian", description=__doc__)
    parser.add_argument("scratch", type=Path, help=argparse.SUPPRESS)
    scratch = parser.parse_args().scratch
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = time.monotonic()
    debian = Debian()
    _print_line(f"an empty Debian {debian.codename} is in {debian.empty()}")
    problems = []
    machine = Machine(scratch / "demo", debian)
    succeeded, printed = _timed(machine, f"{README}, try it", [try_it()], True)
    if not succeeded:
        problems.append(_tail(printed))
    machine = Machine(scratch / "pages", debian)
    active: list[str] = []
    for page in (README, *tutorials()):
        problem = follow(machine, page, active)
        problems += [problem] if problem else []
        active = activation(page) or active
    for line in problems:
        _print_line(line)
    _print_line(f"took {time.monotonic() - started:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
