"""From a model that is named to one that runs."""
