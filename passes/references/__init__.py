"""Reference PrimFuncs of operations that Relax has no operator for: slow, simple, portable."""
