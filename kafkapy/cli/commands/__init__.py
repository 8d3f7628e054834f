"""The commands, a module each; `reassign`, the largest, is a folder."""
