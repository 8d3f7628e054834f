"""Requests from a frame to a handler and back: served APIs, authorization, and fast paths."""
