"""The architectures of GGUF files: tables of their names, and what undoes their conversion."""
