"""What the families of one lineage share: configurations, blocks, weight rules."""
