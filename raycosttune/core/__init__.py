"""The pure core: spaces, surrogates, the planner and the session that holds them."""
