"""Values of properties that are kept in files, directories and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.config_providers import resolved
from kafkapy.common.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider"


def provider(name: str, kind: str, **parameters: str) -> dict[str, str]:
    found = {
        "config.providers": name,
        f"config.providers.{name}.class": f"{PACKAGE}.{kind}ConfigProvider",
    }
    for key, value in parameters.items():
        found[f"config.providers.{name}.param.{key.replace('_', '.')}"] = value
    return found


def test_a_password_in_a_file_replaces_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("password=s3:cret\n")
    given = provider("file", "File") | {
        "sasl.jaas.config": f'Login required password="${{file:{file}:password}}";',
        "other": "${env:HOME} ${HOME}",
    }
    assert resolved(given) == {
        "sasl.jaas.config": 'Login required password="s3:cret";',
        "other": "${env:HOME} ${HOME}",
    }


def test_a_value_that_looks_like_a_variable_is_not_resolved_again(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("password=${file:/etc/passwd:root}\n")
    given = provider("file", "File") | {"password": f"${{file:{file}:password}}"}
    assert resolved(given) == {"password": "${file:/etc/passwd:root}"}


def test_the_files_of_a_directory_are_values(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret")
    given = provider("dir", "Directory") | {"password": f"${{dir:{tmp_path}:password}}"}
    assert resolved(given) == {"password": "secret"}


def test_variables_of_the_environment_are_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    given = provider("env", "EnvVar", allowlist_pattern="KAFKA_.*") | {
        "password": "${env:KAFKA_PASSWORD}"
    }
    assert resolved(given) == {"password": "secret"}


def test_without_providers_nothing_is_replaced() -> None:
    assert resolved({"password": "${env:HOME}"}) == {"password": "${env:HOME}"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (provider("x", "Vault"), "VaultConfigProvider is none of FileConfigProvider, Dir"),
        ({"config.providers": "x"}, "config.providers.x.class= is none of"),
        (provider("x", "File") | {"a": "${x:/none/secrets:k}"}, "Cannot read /none/secrets: No"),
        (provider("x", "File") | {"a": "${x:/dev/null:k}"}, "${x:/dev/null:k} in a has no value"),
        (
            provider("x", "File", allowed_paths="/etc/kafka,/dev") | {"a": "${x:/dev/../proc:k}"},
            "param.allowed.paths=/etc/kafka,/dev does not allow /dev/../proc",
        ),
        (provider("x", "Directory") | {"a": "${x:/none:k}"}, "Cannot read /none/k"),
        (
            provider("x", "Directory", allowed_paths="/etc/kafka") | {"a": "${x:/none:k}"},
            "does not allow /none",
        ),
        (
            provider("x", "Directory") | {"a": "${x:/dev:../proc/version}"},
            "${x:/dev:../proc/version} in a has no value",
        ),
        (provider("x", "EnvVar") | {"a": "${x:KAFKAPY_NONE}"}, "KAFKAPY_NONE} in a has no value"),
        (provider("x", "EnvVar") | {"a": "${x:path:HOME}"}, "path:HOME of the environment has a"),
        (
            provider("x", "EnvVar", allowlist_pattern="KAFKA_.*") | {"a": "${x:HOME}"},
            "param.allowlist.pattern=KAFKA_.* does not allow HOME",
        ),
        (provider("x", "EnvVar", allowlist_pattern="("), "is not a regular expression"),
    ],
)
def test_a_value_that_cannot_be_had_is_an_error(given: dict[str, str], reason: str) -> None:
    """Not a login that is refused for a reason that nobody finds."""
    with pytest.raises(ConfigError) as error:
        resolved(given)
    assert reason in str(error.value)
