"""Kafka in Python: brokers, operations tools and a PySpark data source in one package."""

__version__ = "0.1.0"
