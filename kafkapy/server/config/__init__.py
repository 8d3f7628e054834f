"""The broker's configs: declared, read, checked and changed while it runs."""
