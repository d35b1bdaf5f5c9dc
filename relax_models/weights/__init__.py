"""How a checkpoint's tensors become parameters: rules, and the plan that they resolve to."""
