"""What architectures are made of; `families/` has the architectures themselves, a file each."""
