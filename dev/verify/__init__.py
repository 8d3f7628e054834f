"""Parts of `scripts/test`, `scripts/check` and `scripts/newcomer`."""
