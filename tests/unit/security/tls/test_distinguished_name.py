"""A certificate's subject in Java's words, and the rules that make users of it."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.tls.distinguished_name import (
    PrincipalMapper,
    alternative_names_of,
    subject_of,
)
from tests.harness.security.certificates import can_make


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("/C=DE/O=Acme/OU=People/CN=alice", "CN=alice,OU=People,O=Acme,C=DE"),
        ("/O=Acme, Inc./CN=a\\+b", "CN=a\\+b,O=Acme\\, Inc."),
        ("/CN= #x ", "CN=\\ \\#x\\ "),
        ("/CN=\u00c4rger", "CN=\u00c4rger"),
        ("/DC=org/DC=acme/UID=7", "UID=7,DC=acme,DC=org"),
        (
            "/CN=a/emailAddress=a@b",
            "1.2.840.113549.1.9.1=#1603614062,CN=a",
        ),
        ("/OU=x+CN=y", "CN=y+OU=x"),
    ],
)
def test_subjects(tmp_path: Path, subject: str, name: str) -> None:
    if not can_make("subjects of certificates"):
        return
    pem = tmp_path / "c.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2", "-utf8"),
            *("-multivalue-rdn", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", subject),
            *("-keyout", str(tmp_path / "c.key"), "-out", str(pem)),
        ],
        check=True,
        capture_output=True,
    )
    assert subject_of(ssl.PEM_cert_to_DER_cert(pem.read_text())) == name


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return bytes((tag, len(content))) + content


@pytest.mark.parametrize(
    ("tag", "content", "text"),
    [
        (0x0C, b"a=b#c", "a\\=b\\#c"),
        (0x0C, b'a,b+c"d\\e<f>g;h', 'a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h'),
        (0x0C, b" x  ", "\\ x\\ \\ "),
        (0x0C, b"  ", "\\ \\ "),
        (0x0C, b"\rb\r", "\\\rb\\\r"),
        (0x0C, b"a\0b\n", "a\\00b\n"),
        (0x0C, b"", ""),
        (0x14, b"\xe9", "\ufffd"),
        (0x1B, b"ab", "ab"),
        (0x1E, b"\0A\0=", "\\00A\\00\\="),
        (0x12, b"123", "#1203313233"),
        (0x1C, b"\0\0\0A", "#1c0400000041"),
    ],
)
def test_subjects_of_other_bytes(tag: int, content: bytes, text: str) -> None:
    """As `X500Principal.getName()` of Java 17 says them."""
    common_name = der(0x30, b"\x06\x03\x55\x04\x03", der(tag, content))
    subject = der(0x30, der(0x31, common_name))
    certificate = der(0x30, der(0x30, der(2, b"1"), *[der(0x30)] * 3, subject))
    assert subject_of(certificate) == f"CN={text}"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("", set()),
        ("DNS:a.example,DNS:*.b,IP:127.0.0.1", {"DNS:a.example", "DNS:*.b", "IP:7f000001"}),
        ("IP:::1", {f"IP:{1:032x}"}),
        ("email:a@b", {"8103614062"}),
    ],
)
def test_alternative_names(tmp_path: Path, names: str, found: set[str]) -> None:
    if not can_make("alternative names of certificates"):
        return
    pem = tmp_path / "c.pem"
    extension = ("-addext", f"subjectAltName=critical,{names}") if names else ()
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-subj", "/CN=x", *extension),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-keyout", str(tmp_path / "c.key"), "-out", str(pem)),
        ],
        check=True,
        capture_output=True,
    )
    assert alternative_names_of(ssl.PEM_cert_to_DER_cert(pem.read_text())) == found


DN = "CN=Alice,OU=People,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", DN),
        ("", DN),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U , DEFAULT", "ALICE@PEOPLE"),
        ("RULE:^CN=Bob.*$/bob/, DEFAULT", DN),
        ("RULE:^CN=Bob.*$/bob/", None),
        (r"RULE:^CN=(.*?),.*$/team\/$1/", "team/Alice"),
        (r"RULE:^CN=(.*?),.*$/a\$1/", "a$1"),
        (r"RULE:^CN=(.*?),.*$/x\n$1/", "xnAlice"),
        ("RULE:^CN=(.*?),.*$/$1$2/", "Alice$2"),
        ("RULE:^CN=(.*?),.*$/$12/", "Alice2"),
        ("RULE:^CN=(.*?),.*$/$01/", "Alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$3-$1-$13/", "$3-Alice-Alice3"),
        ("RULE:^CN=(a)?(.*?),.*$/$1-$2/", "-Alice"),
        ("RULE:^CN=(?<n>.*?),.*$/${n}/", "Alice"),
        ("RULE:^CN=(.*?),.*$/ $1 /", " Alice "),
        ("RULE: ^CN=(.*?),.*$ /$1/", None),
        ("RULE:.*/x/", "xx"),
        ("RULE:CN=(.*?),OU=(.*?)/$1/", "AlicePeople,O=Acme"),
    ],
)
def test_rules(rules: str, name: str | None) -> None:
    assert PrincipalMapper(rules).name_of(DN) == name


@pytest.mark.parametrize("rules", ["CN", "DEFAULT DEFAULT", "RULE:(/x/", "RULE:x/$1/"])
def test_what_is_no_rule(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"^k[ =:]"):
        PrincipalMapper(rules, "k")
