"""The group and the transaction coordinator as services: their log, markers, verification."""
