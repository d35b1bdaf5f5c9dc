"""Runs the server on several machines: Ray Serve routes prompts to replicas with cached prefixes.

`app`, `ingress` and `router` import Ray; the other modules do not.
"""
