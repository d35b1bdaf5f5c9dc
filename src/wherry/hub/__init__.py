"""Models of Hugging Face: which files a model is, and how they come to this machine."""
