"""Reader of GGUF, llama.cpp's file format for weights, configuration and tokenizer."""
