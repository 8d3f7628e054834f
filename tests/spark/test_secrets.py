"""`kafkapy spark-submit` with a password: it logs in, and nobody reads the password, neither in
the list of processes nor where Spark shows its configuration."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.harness.security.secure_broker import SecureBroker, Way
from tests.harness.security.secure_kafka import SecureApacheBroker
from tests.harness.spark.spark_jobs import printed, running_job
from tests.harness.spark.spark_topics import Topic

SECRET = "secret"
SCRIPT = """
from pathlib import Path
from pyspark.sql import SparkSession
import kafkapy.spark

spark = SparkSession.builder.getOrCreate()
rows = kafkapy.spark.read(spark).count()
lines = []
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines.append(path.read_bytes())
    except OSError:
        pass
print("rows", rows)
print("others", sum(PASSWORD in line for line in lines))
spark.stop()
"""


def test_a_password_is_on_no_command_line_and_in_no_event_log(
    secured: SecureBroker | SecureApacheBroker | None, tmp_path: Path
) -> None:
    if not isinstance(secured, SecureBroker):
        return
    topic = Topic(secured.bootstrap_servers, 2)
    topic.write(20)
    way = Way("SASL", "PLAIN")
    config, script, events = tmp_path / "client", tmp_path / "job.py", tmp_path / "events"
    lines = [f"{k}={v}" for k, v in secured.java(way).items()]
    config.write_text("\n".join(lines).replace("\\", "\\\\"))
    script.write_text(f"PASSWORD = b'password=' + bytes([34]) + b'{SECRET}'\n{SCRIPT}")
    events.mkdir()
    command = [str(Path(sys.executable).parent / "kafkapy"), "spark-submit", "--master", "local[1]"]
    command += ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events}"]
    command += ["--conf", "spark.eventLog.compress=false", "--conf", "spark.ui.enabled=false"]
    command += ["--bootstrap-server", secured.servers(way), "--command-config", str(config)]
    command += ["--from", topic.name, str(script)]
    with running_job(command, tmp_path / "log") as process:
        found = printed(process)
    said = (tmp_path / "log").read_text()
    assert found == {"rows": "20", "others": "0"}, said
    logged = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"sasl.jaas.config" in logged
    assert f'password=\\"{SECRET}'.encode() not in logged
