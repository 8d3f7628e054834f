"""Apache Kafka's console tools, a producer and a consumer of the same lines."""

from __future__ import annotations

from tests.harness.processes import apache_kafka


def send_lines_through_java(config: str, *words: str) -> None:
    """Write lines and read them again. `words` name the servers and the topic; `config` is the file
    of client properties of both tools."""
    lines = b"".join(b"%d\n" % i for i in range(100))
    done = apache_kafka.run_tool(
        apache_kafka.CONSOLE_PRODUCER, *words, "--producer.config", config, stdin=lines
    )
    assert done.returncode == 0, done.stderr.decode()
    done = apache_kafka.run_tool(
        apache_kafka.CONSOLE_CONSUMER,
        *words,
        *("--consumer.config", config, "--from-beginning", "--max-messages", "100"),
    )
    assert done.stdout == lines, done.stderr.decode()
