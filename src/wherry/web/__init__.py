"""Models in a browser: the page that runs them, and what a web server has to have for it."""
