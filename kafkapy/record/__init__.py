"""Record batches as bytes. May import `common`. Start with `batch_header`.

Then read `validation` (the produce path), `builder` and `records` (records to batches and back),
and `legacy` (the formats before v2).
"""
