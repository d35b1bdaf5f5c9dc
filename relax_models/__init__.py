"""Model architectures: `families/` has a file for each, the other rooms what they are built of."""
