"""Ray Serve on several machines: `serve run wherry.serve_ray:app model=demo`.

Needs the extra `ray`: pip install 'wherry[ray]'.
"""

# This module has no postponed annotations, because Ray Serve reads the type of the builder's
# argument.
from wherry.runtime.ray_serve.app import app as app
from wherry.runtime.ray_serve.options import Options as Options
