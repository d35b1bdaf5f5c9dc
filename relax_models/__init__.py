"""Building blocks of model architectures; `families/` has the architectures, one file each."""
