"""Makes what an app's build downloads of a folder that `wherry package` wrote; `make release`."""
