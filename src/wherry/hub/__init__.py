"""Models on the Hugging Face hub: which files a model needs, and their download."""
