"""Many machines: Ray Serve runs replicas of the server, and sends prompts where their prefix is.

`app`, `ingress` and `router` import Ray; the rest does not.
"""
