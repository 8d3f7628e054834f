"""What commands show: each view turns plain results into text, tables and JSON."""
