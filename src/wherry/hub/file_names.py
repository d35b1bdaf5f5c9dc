"""Names of the files of a Hugging Face model."""

SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
# Mistral's own layout, and the record in a folder that was made of one.
MISTRAL_PARAMS, MISTRAL_RECORD = "params.json", "wherry-mistral.json"
MISTRAL_WEIGHTS = "consolidated.safetensors"
MISTRAL_INDEX = "consolidated.safetensors.index.json"
PROCESSOR = "preprocessor_config.json"  # settings of images
GGUF_RECORD = "wherry-gguf.json"  # in a folder that was made of a GGUF file
# In a folder that joins a model with an EAGLE-3 head: the paths of both; the places of the model's
# tokens in the head's vocabulary; and the field of config.json that has the head's.
DRAFT_HEAD, DRAFT_PLACES = "wherry-draft-head.json", "places.safetensors"
DRAFT_HEAD_FIELD = "wherry_draft_head"
TEKKEN = "tekken.json"
MODELOPT = "hf_quant_config.json"  # how NVIDIA's ModelOpt quantized the weights
RANKS, QWEN_RANKS = "tiktoken.model", "qwen.tiktoken"  # tiktoken's ranks, of Kimi and of Qwen
# Files of older tokenizers, in models without a tokenizer.json.
OLDER_TOKENIZERS = (
    TEKKEN,
    RANKS,
    QWEN_RANKS,
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
)
MODULES = "modules.json"  # module list of the library sentence-transformers
SENTENCE_TRANSFORMERS = (MODULES, "config_sentence_transformers.json", "sentence_bert_config.json")
# Shell patterns of module configurations and of the weights of linears, one folder deep.
MODULE_FILES = "[0-9]_*/config.json"
DENSE_FILES = ("[0-9]_Dense/model.safetensors", "[0-9]_Dense/pytorch_model.bin")
