"""Events as lines."""

import io
import json

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.json_events import emitter


def test_time_and_name_come_first() -> None:
    out = io.StringIO()
    emitter(Environment(stdout=out))("tool_data", {"sent": 1, "name_of": "ü"})
    line = out.getvalue()
    assert line.endswith('"name":"tool_data","sent":1,"name_of":"ü"}\n')
    assert list(json.loads(line)) == ["timestamp", "name", "sent", "name_of"]
