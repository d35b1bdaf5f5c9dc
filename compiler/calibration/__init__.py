"""Encodes linear layers by what they do to the activations of a calibration text."""
