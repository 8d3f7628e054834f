"""Views of commands: each turns plain results into text, tables and JSON."""
