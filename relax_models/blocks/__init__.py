"""Attention, experts and recurrences that blocks of several architectures are built of."""
