"""Several machines: Ray Serve runs replicas of the server and routes prompts to cached prefixes.

`app`, `ingress` and `router` import Ray; the rest does not.
"""
