"""Networks that draft tokens for a model: multi-token prediction, EAGLE-3."""
