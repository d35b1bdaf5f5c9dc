"""Models in a browser: the page that runs them, and a web server for the page."""
