"""What every other room needs: settings, locks, and files that are read and written with care."""
