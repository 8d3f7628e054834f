"""Clusters whose links, disks and processes fail, loads on them, and checks of the results."""
