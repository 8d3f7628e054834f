"""A request on its way: its context, its outcomes, and the turns that large ones take."""
