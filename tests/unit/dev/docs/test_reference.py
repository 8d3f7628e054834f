"""The generated parts of docs/reference are complete."""

from __future__ import annotations

from dev.docs import reference
from dev.docs.main import documents
from dev.docs.reference import beginning, cell
from kafkapy.cli.framework.command import commands
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.server.config.broker_config_table import NO_EFFECT
from kafkapy.server.config.kafka_config import BROKER_CONFIGS
from kafkapy.server.counts.metric_table import METRICS


def test_every_page_is_up_to_date() -> None:
    stale = [path for path, text in documents() if text != path.read_text()]
    assert not stale, "run scripts/docs"


def test_every_flag_of_every_command_is_on_the_page() -> None:
    sections = reference.command_flags().split("## kafkapy ")[1:]
    by_name = {section.split("\n", 1)[0]: section for section in sections}
    assert set(by_name) == set(COMMANDS)
    common = reference.common_flags()
    for name, command in commands().items():
        if command.name != name:
            continue
        for spec in command.specs():
            shown = common if f"--{spec.names[0]}" in reference.COMMON else by_name[name]
            assert f"`--{spec.names[0]}" in shown, (name, spec.names)
            assert cell(spec.help) in shown


def test_commands_that_report_failures_with_status_0_are_listed() -> None:
    """The page promised 1 for each refused request; scripts relied on it."""
    rows = reference.statuses_of_reported_failures()
    for name, command in commands().items():
        has_strict = any(spec.names[0] == "strict" for spec in command.specs())
        assert bool(command.reported_failures) or not has_strict, name
        if command.reported_failures and command.name == name:
            last = "1" if has_strict else ""
            assert f"| `kafkapy {name}` | {cell(command.reported_failures)} | {last} |" in rows


def test_every_config_is_on_its_page_once() -> None:
    effective, other = reference.broker_configs(), reference.broker_configs_without_effect()
    refused = reference.refused_broker_configs()
    for name in BROKER_CONFIGS.keys:
        row = f"| `{name}` |"
        assert [row in effective, row in other, row in refused].count(True) == 1, name
        assert (f"| `{name}` |" in other) == (name in NO_EFFECT)
    assert all(f"| `{name}` |" in reference.topic_config_table() for name in TOPIC_CONFIGS.keys)


def test_a_config_that_can_change_at_run_time_says_so() -> None:
    rows = {row.split("`")[1]: row for row in reference.broker_configs().splitlines()[2:]}
    assert rows["message.max.bytes"].endswith("| cluster |")
    assert rows["listeners"].endswith("| broker |")
    assert rows["log.dirs"].endswith("| restart |")
    # Kafka applies it while brokers run; here it is read when one starts.
    assert rows["num.replica.fetchers"].endswith("| restart |")


def test_every_metric_is_on_the_page() -> None:
    shown = reference.metrics()
    for name, row in METRICS.items():
        assert f"`{name}{'_total' if row.kind == 'counter' else ''}` | {row.kind} |" in shown


def test_kafkas_texts_begin_a_row_that_a_table_can_hold() -> None:
    assert beginning("Choose <code>a|b</code>. Or d.") == "Choose a\\|b. Or d."
    assert beginning("List%n of things without an end") == "List of things without an end"
    assert beginning("The first. " + "Long " * 60 + "end. More.") == "The first."
    assert beginning("One of these:<ul><li>a</li></ul>") == "One of these:a"
