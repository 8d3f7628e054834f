"""Record batches as bytes. May import `common`. Start with `batch_header`.

Then `validation` (the produce path), `builder` and `records` (rows in, rows out); `legacy` is
what came before format v2.
"""
