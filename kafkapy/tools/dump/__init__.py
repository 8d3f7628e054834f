"""DumpLogSegments: segments, indexes, snapshots and the records of internal topics."""
