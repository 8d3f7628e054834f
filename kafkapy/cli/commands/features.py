"""`kafkapy features`: Kafka's `kafka-features.sh` (`FeatureCommand`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    refuse_other_actions,
    require,
    single_verb,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.admin.features import UpgradeType

CHANGES: Final = ("upgrade", "downgrade", "disable")
VERBS: Final = ("describe", *CHANGES, "version-mapping", "feature-dependencies")
COLUMNS: Final = (
    *("Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch"),
)
_SHORT_MAX: Final = 2**15 - 1


@dataclass
class FeaturesOptions(ClusterOptions):
    """The flags of all verbs."""

    words: list[str] = values("The action.", metavar="|".join(VERBS), choices=VERBS)
    feature: list[str] = values(
        "a feature and its level; for disable, only the feature.",
        actions=("upgrade", "downgrade", "disable", "feature-dependencies"),
        metavar="NAME=LEVEL",
    )
    metadata: str | None = value(
        "the level of metadata.version, by its release. Deprecated.",
        actions=("upgrade", "downgrade"),
        metavar="RELEASE",
    )
    release_version: str | None = value(
        "a release, for all features.",
        actions=("upgrade", "downgrade", "version-mapping"),
        metavar="RELEASE",
    )
    unsafe: bool = flag("allow changes that may lose metadata.", actions=("downgrade", "disable"))
    dry_run: bool = flag("validate only.", actions=("upgrade", "downgrade", "disable"))


def run(options: FeaturesOptions, env: Environment) -> ExitStatus:
    """Run the verb."""
    verb = single_verb(options.words, VERBS)
    refuse_other_actions(options, verb)
    require(options, "bootstrap_server")
    if verb in _LOCAL:
        show(env, _LOCAL[verb](options), options.output)
        return ExitStatus.SUCCESS
    if verb == "describe":
        show(env, _describe(options, env), options.output)
        return ExitStatus.SUCCESS
    return _change(verb, options, env)


def _describe(options: FeaturesOptions, env: Environment) -> Report:
    from kafkapy.admin.features import describe_features
    from kafkapy.tools.feature_releases import level_text

    with options.connect(env) as cluster:
        found = describe_features(cluster)
    epoch = "-" if found.epoch < 0 else str(found.epoch)
    rows = []
    for name, *levels in found.features:
        rows.append([name, *(level_text(name, level) for level in levels), epoch])
    text = ["\t".join(f"{c}: {v}" for c, v in zip(COLUMNS, row, strict=True)) for row in rows]
    data = [{**each._asdict(), "epoch": found.epoch} for each in found.features]
    return Report("features", data, text, [Table(COLUMNS, rows)])


def _change(verb: str, options: FeaturesOptions, env: Environment) -> ExitStatus:
    from kafkapy.admin.features import update_features

    levels = _levels(verb, options)
    if not levels:
        raise ConfigError(f"You must specify at least one feature to {verb}")
    with options.connect(env) as cluster:
        errors = update_features(
            cluster, levels, _kind(verb, options), validate_only=options.dry_run
        )
    text, data = [], []
    for name, error in errors.items():
        target = "" if verb == "disable" else f" to {levels[name]}"
        if error is None:
            outcome = "can be" if options.dry_run else "was"
            text.append(f"{name} {outcome} {verb}d{target}.")
        else:
            outcome = "Can not" if options.dry_run else "Could not"
            text.append(f"{outcome} {verb} {name}{target}. {error.message}")
        data.append(
            {"feature": name, "level": levels[name], "error": error.message if error else None}
        )
    show(env, Report("features", data, text), options.output)
    failures = sum(error is not None for error in errors.values())
    if failures:
        raise ConfigError(f"{failures} out of {len(levels)} operation(s) failed.")
    return ExitStatus.SUCCESS


def _kind(verb: str, options: FeaturesOptions) -> UpgradeType:
    from kafkapy.admin.features import UpgradeType

    if verb == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE


def _levels(verb: str, options: FeaturesOptions) -> dict[str, int]:
    """The levels to set, by feature."""
    from kafkapy.tools.feature_releases import (
        METADATA_VERSION,
        level_of_metadata,
        levels_of_release,
    )

    if options.release_version is not None and verb != "disable":
        if options.feature or options.metadata is not None:
            raise ConfigError("Can not specify `release-version` with other feature flags.")
        return levels_of_release(options.release_version)
    levels = {}
    if options.metadata is not None and verb != "disable":
        levels[METADATA_VERSION] = level_of_metadata(options.metadata)
    for text in options.feature:
        name, level = (text, 0) if verb == "disable" else _name_and_level(text)
        if name in levels:
            raise ConfigError(f"Feature {name} was specified more than once.")
        levels[name] = level
    return levels


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    problem = f"Can't parse feature=level string {text}: "
    if not equals:
        raise ConfigError(f"{problem}equals sign not found.")
    try:
        number = int(level)
    except ValueError:
        number = _SHORT_MAX + 1
    if abs(number) > _SHORT_MAX:
        raise ConfigError(f"{problem}unable to parse {level} as a short.")
    return name, number


def _version_mapping(options: FeaturesOptions) -> Report:
    from kafkapy.tools.feature_releases import LATEST, levels_of_release, version_text

    levels = levels_of_release(options.release_version or LATEST)
    text = [version_text(name, level) for name, level in levels.items()]
    return Report("features", [levels], text)


def _feature_dependencies(options: FeaturesOptions) -> Report:
    from kafkapy.tools.feature_releases import (
        METADATA_VERSION,
        dependency_of,
        level_of_metadata,
        version_text,
    )

    if not options.feature:
        raise UsageError("Command line error: argument --feature is required")
    text = []
    data = []
    for name, level in map(_name_and_level, options.feature):
        needed = dependency_of(name, level)
        version = version_text(name, level)
        if needed is None:
            text.append(f"{version} has no dependencies.")
        else:
            required = version_text(METADATA_VERSION, level_of_metadata(needed))
            text += [f"{version} requires:", f"    {required}"]
        data.append({"feature": name, "level": level, "requires": needed})
    return Report("features", data, text)


_LOCAL: Final[dict[str, Callable[[FeaturesOptions], Report]]] = {
    "version-mapping": _version_mapping,
    "feature-dependencies": _feature_dependencies,
}

COMMAND: Final = Command(
    "features",
    FeaturesOptions,
    run,
    as_argparse=True,
    operands="words",
    refused={
        "bootstrap-controller": (
            "kafkapy sends no requests to KRaft controllers; use --bootstrap-server"
        )
    },
    groups={
        "upgrade, downgrade and disable": "feature metadata release-version unsafe dry-run",
    },
    examples={
        "Show the features that the brokers support, and their levels.": "describe {B}",
        "Stop transactions from increasing producer epochs.": (
            "downgrade --feature transaction.version=1 {B}"
        ),
        "Disable the consumer protocol.": "disable --feature group.version {B}",
        "Show the levels that Kafka 4.0 sets.": "version-mapping --release-version 4.0 {B}",
    },
)
