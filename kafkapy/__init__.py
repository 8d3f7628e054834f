"""Kafka for Python people: brokers, the ops toolbox and a PySpark data source in one package."""

__version__ = "0.1.0"
