"""The process that listens on a port, found in /proc."""

from __future__ import annotations

import os
from pathlib import Path

from kafkapy.common.port_holder import port_holders

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"


def row(local: str, state: str, inode: int) -> str:
    return f"   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 0 0 0 {inode} 1\n"


def make_proc(root: Path, *, tcp: str = "", tcp6: str = "") -> Path:
    (root / "net").mkdir(parents=True)
    (root / "net" / "tcp").write_text(HEAD + tcp)
    (root / "net" / "tcp6").write_text(HEAD + tcp6)
    return root


def add_process(root: Path, pid: int, command: bytes, *inodes: int) -> None:
    (root / str(pid) / "fd").mkdir(parents=True)
    (root / str(pid) / "cmdline").write_bytes(command)
    for number, inode in enumerate(inodes):
        os.symlink(f"socket:[{inode}]", root / str(pid) / "fd" / str(number))


def test_the_process_is_named_with_its_command(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, tcp=row("0100007F:2384", "0A", 77))
    add_process(proc, 5, b"java\0kafka.Kafka\0", 1, 77)
    add_process(proc, 6, b"other\0", 78)
    assert port_holders(9092, proc) == " by process 5 (java kafka.Kafka)"
    assert port_holders(9093, proc) == ""


def test_ipv6_counts_and_connections_do_not(tmp_path: Path) -> None:
    proc = make_proc(
        tmp_path, tcp=row("0100007F:2384", "01", 1), tcp6=row("0" * 32 + ":2384", "0A", 2)
    )
    add_process(proc, 5, b"client", 1)
    add_process(proc, 6, b"server", 2)
    assert port_holders(9092, proc) == " by process 6 (server)"


def test_nothing_is_said_of_what_proc_does_not_show(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, tcp=row("0100007F:2384", "0A", 77))
    (proc / "5").mkdir()
    assert port_holders(9092, proc) == ""
    assert port_holders(9092, tmp_path / "5") == ""


def test_a_command_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, tcp=row("0100007F:2384", "0A", 77))
    add_process(proc, 5, b"evil\x1b[2J\n\0" + b"x" * 200, 77)
    said = port_holders(9092, proc)
    assert said.startswith(" by process 5 (evil?[2J? xxx")
    assert said.endswith("x...)")
    assert len(said) < 130
