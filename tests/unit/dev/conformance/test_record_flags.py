"""Reading flags out of help texts, in the forms that Apache Kafka's tools have."""

from __future__ import annotations

from dev.conformance.record_flags import compact, flags_in, shell_commands_in, verbs_in

JOPT = """This tool helps.
Option                                 Description
------                                 -----------
--bootstrap-server <String: server(s)  REQUIRED: The server, as with
  to use for bootstrapping>              --broker-list.
* --files <String: file1, file2, ...>  The files.
--key-decoder-class [String]           If set, used.
-?, -h, --help                         Print usage information.
"""
ARGPARSE = """usage: kafka-cluster [-h] {cluster-id,unregister} ...

positional arguments:
  {cluster-id,unregister}
    cluster-id           Get the id, with
                         --bootstrap-server.
    unregister           Unregister.

optional arguments:
  -h, --help             show this help message and exit
  --bootstrap-server BOOTSTRAP_SERVER, -b BOOTSTRAP_SERVER
                         A list.
  --producer-props PROP-NAME=PROP-VALUE [PROP-NAME=PROP-VALUE ...]
                         Properties.
"""


def test_rows_of_jopt_simple() -> None:
    assert flags_in(JOPT) == [
        ["--bootstrap-server"],
        ["--files"],
        ["--key-decoder-class"],
        ["-?", "-h", "--help"],
    ]


def test_rows_of_argparse4j() -> None:
    assert flags_in(ARGPARSE) == [
        ["-h", "--help"],
        ["--bootstrap-server", "-b"],
        ["--producer-props"],
    ]
    assert verbs_in(ARGPARSE) == ["cluster-id", "unregister"]


def test_commands_of_zookeepers_shell() -> None:
    text = "ZooKeeper -server host:port cmd\n\tls [-s] [-R] path\n\tclose \n\tsetquota -n|-b val\n"
    assert shell_commands_in(text) == [["ls", "-s", "-R"], ["close"], ["setquota", "-n", "-b"]]


def test_the_record_has_a_line_for_each_part() -> None:
    text = compact({"kafka": "3.9.1", "scripts": {"a.sh": [{"words": ["b"], "flags": [["-c"]]}]}})
    assert '\n   {"words": ["b"], "flags": [["-c"]]}\n' in text
