"""Networks that draft tokens beside a model: multi-token prediction, EAGLE-3."""
