"""Foundations that every other package uses: settings, locks, and safe file access."""
