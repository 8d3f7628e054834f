"""From a frame to a handler and back: what is served, who may ask for it, and the fast paths."""
