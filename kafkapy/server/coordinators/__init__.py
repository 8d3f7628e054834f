"""The group, transaction and share coordinators as services: logs, markers, verification."""
