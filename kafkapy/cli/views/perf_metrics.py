"""`--print-metrics` of the performance tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.cli.framework.output import Report, Table

if TYPE_CHECKING:
    from kafkapy.tools.perf.client_metrics import ClientMetrics


def with_metrics(report: Report, metrics: ClientMetrics) -> Report:
    """A report of one row, with the metrics of the client in all three forms."""
    (row,) = report.data
    found = metrics.values()
    return report._replace(
        data=[{**row, "metrics": found}],
        text=[*report.text, *metrics.lines()],
        tables=[*report.tables, Table(("Metric", "Value"), list(found.items()))],
    )
