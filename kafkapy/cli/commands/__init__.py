"""The commands, each in its own module; `reassign`, the largest, is a package."""
