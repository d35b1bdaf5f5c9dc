"""The best-known models of each family, their published context length, and their tool-call format.

Only docs/models.md and `wherry list --supported` read this table; a model's own config.json always
takes precedence.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """The names, context lengths and tool-call format by which users know a model family."""

    models: str
    context: str  # context lengths in tokens of the published models, shortest to longest
    # Value of `--tool-format` for the family's instruct models; "": tools are described in the
    # prompt.
    tools: str = ""


UNNAMED = Known("", "")  # of a family without a row
KNOWN = {
    "afmoe": Known("Trinity Nano, Mini, Large", "128k to 256k", "hermes"),
    "apertus": Known("Apertus 8B, 70B", "64k"),
    "arcee": Known("AFM 4.5B", "64k", "hermes"),
    "baichuan": Known("Baichuan and Baichuan 2, 7B and 13B", "4k"),
    "bamba": Known("Bamba 9B", "4k to 256k"),
    "bart": Known("BART base and large: summaries (CNN, XSum), paraphrases", "1k"),
    "bert": Known("all-MiniLM, BGE, E5, GTE; MS MARCO cross-encoders", "512"),
    "bitnet": Known("BitNet b1.58 2B-4T", "4k"),
    "bloom": Known("BLOOM, BLOOMZ 560M to 176B", "2k"),
    "camembert": Known("CamemBERT, French embeddings", "512"),
    "codegen": Known("CodeGen 350M to 16B", "2k"),
    "cohere": Known("Command R, Command R+, Aya 23, Aya Expanse", "8k to 128k", "cohere"),
    "cohere2": Known("Command R7B, Command A", "128k to 256k", "cohere"),
    "cohere2_moe": Known("Command A+; North Mini Code", "128k to 500k", "cohere"),
    "cwm": Known("Code World Model 32B", "128k"),
    "deepseek_v2": Known("DeepSeek V2, V2-Lite, Coder V2", "32k to 160k"),
    "deepseek_v3": Known("DeepSeek V3, V3.1, R1; Moonlight", "8k to 160k", "deepseek-v3"),
    "distilbert": Known("DistilBERT, multi-qa-distilbert; SST-2 classifiers", "512"),
    "dots1": Known("dots.llm1", "32k", "hermes"),
    "ernie4_5": Known("ERNIE 4.5 0.3B", "128k"),
    "ernie4_5_moe": Known("ERNIE 4.5 21B-A3B, 300B-A47B", "128k"),
    "eurobert": Known("EuroBERT 210M, 610M, 2.1B", "8k"),
    "exaone": Known("EXAONE 3.0, 3.5, Deep", "4k to 32k"),
    "exaone4": Known("EXAONE 4.0 1.2B, 32B; EXAONE 4.5 33B (text)", "64k to 256k", "hermes"),
    "exaone_moe": Known("K-EXAONE 236B-A23B", "256k", "hermes"),
    "falcon": Known("Falcon 7B, 40B, 180B, RW", "2k"),
    "falcon_h1": Known("Falcon-H1 0.5B to 34B, Falcon-H1-Tiny", "16k to 256k"),
    "falcon_mamba": Known("Falcon Mamba 7B", "no end"),
    "gemma": Known("Gemma 2B, 7B; CodeGemma", "8k"),
    "gemma2": Known("Gemma 2 2B, 9B, 27B", "8k"),
    "gemma3_text": Known("Gemma 3 270M to 27B; FunctionGemma; EmbeddingGemma", "32k to 128k"),
    "gemma3n_text": Known("Gemma 3n E2B, E4B (text)", "32k"),
    "gemma4_text": Known("Gemma 4 (text)", "128k to 256k", "gemma"),
    "gemma4_unified_text": Known("Gemma 4 12B (text)", "256k", "gemma"),
    "glm": Known("GLM-4 9B, GLM-Edge", "8k to 1M"),
    "glm4": Known("GLM-4 0414, GLM-Z1, 9B and 32B", "32k"),
    "glm4_moe": Known("GLM-4.5, GLM-4.5-Air, GLM-4.6, GLM-4.7", "128k to 200k", "glm"),
    "glm4_moe_lite": Known("GLM-4.7-Flash", "200k", "glm-4.7"),
    "gpt2": Known("GPT-2, DistilGPT-2, DialoGPT", "1k"),
    "gpt_bigcode": Known("StarCoder, SantaCoder", "2k to 8k"),
    "gpt_neo": Known("GPT-Neo, TinyStories", "2k"),
    "gpt_neox": Known("Pythia, GPT-NeoX 20B, RedPajama, Dolly", "2k"),
    "gpt_oss": Known("gpt-oss 20B, 120B", "128k", "harmony"),
    "gptj": Known("GPT-J 6B", "2k"),
    "granite": Known("Granite 3.0 to 3.3, 2B and 8B", "4k to 128k", "granite"),
    "granite_swa": Known("Granite Swash 2B", "8k"),
    "granitemoe": Known("Granite 3.0 and 3.1 MoE, 1B and 3B", "4k to 128k", "granite"),
    "granitemoehybrid": Known("Granite 4.0 and 4.1, Nano to Small", "32k to 128k", "hermes"),
    "granitemoeshared": Known("Granite MoE with shared experts", "128k", "granite"),
    "gte": Known("gte-multilingual-base, GTE v1.5, as in transformers", "8k"),
    "helium": Known("Helium 1", "4k"),
    "hunyuan_v1_dense": Known("Hunyuan 0.5B to 7B", "32k to 256k"),
    "hunyuan_v1_moe": Known("Hunyuan A13B", "32k to 256k"),
    "hyperclovax": Known("HyperCLOVA X SEED", "16k to 128k"),
    "internlm2": Known("InternLM2, InternLM2.5", "32k to 1M"),
    "internlm3": Known("InternLM3 8B", "32k"),
    "iquestcoder": Known("IQuest-Coder", "128k"),
    "jais2": Known("Jais 2", "8k"),
    "jamba": Known("Jamba 1.5 to 1.7, Jamba Reasoning 3B", "256k", "apriel"),
    "jina_embeddings_v3": Known("jina-embeddings-v3-hf", "8k"),
    "kimi_linear": Known("Kimi Linear 48B-A3B", "1M", "kimi"),
    "lfm2": Known("LFM2 and LFM2.5, 350M to 2.6B; LFM2-VL, LFM2.5-VL", "32k to 128k", "lfm2"),
    "lfm2_moe": Known("LFM2-8B-A1B, LFM2-24B-A2B", "128k", "lfm2"),
    "lfm3": Known("LFM3 1.7B", "128k"),
    "llama": Known(
        "Llama 1, 2, 3 to 3.3; SmolLM, SmolLM2; TinyLlama; Vicuna; Yi; DeepSeek-Coder",
        "2k to 128k",
        "llama",
    ),
    "llama4_text": Known(
        "Llama 4 Scout and Maverick (text), MobileLLM-R1", "8k to 32k, one chunk", "llama"
    ),
    "mamba": Known("Mamba 130M to 2.8B", "no end"),
    "mamba2": Known("Mamba-2 130M to 2.7B, Codestral Mamba 7B", "no end"),
    "minimax_m2": Known("MiniMax M2, M2.1, M2.5", "192k to 200k", "minimax"),
    "mimo": Known("MiMo 7B", "32k"),
    "minicpm": Known("MiniCPM 1B, 2B", "4k"),
    "ministral": Known("Ministral 8B", "32k to 128k", "mistral-list"),
    "ministral3": Known("Ministral 3 3B, 8B, 14B", "256k", "mistral"),
    "mistral": Known("Mistral 7B, Nemo, Small; Codestral; Zephyr", "8k to 128k", "mistral-list"),
    "mistral4": Known("Mistral Small 4 119B", "256k to 1M", "mistral"),
    "mixtral": Known("Mixtral 8x7B, 8x22B", "32k to 64k", "mistral-list"),
    "modernbert": Known("ModernBERT, GTE ModernBERT, Nomic Embed ModernBERT", "8k"),
    "mpnet": Known("all-mpnet-base, multi-qa-mpnet", "512"),
    "mpt": Known("MPT 7B, 30B", "2k to 8k"),
    "mt5": Known("mT5 small to XXL", "512 and more"),
    "muse_glimmer_text": Known("Muse Glimmer 30B (text)", "128k"),
    "nemotron": Known("Nemotron-4, Minitron", "4k to 8k"),
    "nemotron_h": Known(
        "Nemotron 3 Nano and Super; Nemotron-H, Nemotron Nano 2", "8k to 1M", "qwen-coder"
    ),
    "new": Known("gte-multilingual-base, GTE v1.5 and their rerankers", "8k"),
    "nomic_bert": Known("Nomic Embed Text 1 and 1.5", "8k"),
    "olmo": Known("OLMo 1B, 7B", "2k to 4k"),
    "olmo2": Known("OLMo 2 1B to 32B", "4k"),
    "olmo3": Known("OLMo 3 7B, 32B", "64k", "olmo"),
    "olmoe": Known("OLMoE 1B-7B", "4k"),
    "opt": Known("OPT 125M to 66B, Galactica", "2k"),
    "persimmon": Known("Persimmon 8B", "16k"),
    "phi": Known("Phi-1, Phi-1.5, Phi-2", "2k"),
    "phi3": Known("Phi-3, Phi-3.5-mini, Phi-4, Phi-4-mini", "4k to 128k", "phi"),
    "phimoe": Known("Phi-3.5-MoE, Phi-tiny-MoE", "4k to 128k"),
    "qwen2": Known(
        "Qwen1.5, Qwen2, Qwen2.5, QwQ; DeepSeek-R1-Distill-Qwen", "32k to 128k", "hermes"
    ),
    "qwen2_moe": Known("Qwen1.5-MoE, Qwen2-57B-A14B", "8k to 64k"),
    "qwen3": Known("Qwen3 0.6B to 32B; Qwen3-Embedding, Qwen3-Reranker", "32k to 256k", "hermes"),
    "qwen3_moe": Known("Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder", "40k to 256k", "hermes"),
    "qwen3_5_text": Known("Qwen3.5 0.8B to 27B (text)", "256k", "qwen-coder"),
    "qwen3_5_moe_text": Known(
        "Qwen3.5-35B-A3B, 122B-A10B, 397B-A17B; Qwen3.6-35B-A3B (text)", "256k", "qwen-coder"
    ),
    "qwen3_next": Known("Qwen3-Next-80B-A3B; Qwen3-Coder-Next", "256k", "hermes"),
    "recurrent_gemma": Known("RecurrentGemma 2B, 9B", "8k"),
    "roberta": Known("RoBERTa, all-distilroberta, all-roberta-large", "512"),
    "rwkv7": Known("RWKV-7 Goose World 0.1B to 2.9B", "no end"),
    "seed_oss": Known("Seed-OSS 36B", "512k", "seed"),
    "smollm3": Known("SmolLM3 3B", "64k", "hermes"),
    "stablelm": Known("StableLM 3B, 2 1.6B, 2 12B; Stable Code", "4k to 16k"),
    "starcoder2": Known("StarCoder2 3B, 7B, 15B", "16k"),
    "t5": Known(
        "T5, T5 v1.1, FLAN-T5 (small to XXL); grammar and translation models", "512 and more"
    ),
    "vaultgemma": Known("VaultGemma 1B", "1k"),
    "xlm-roberta": Known("BGE-M3, multilingual E5, BGE rerankers", "512 to 8k"),
    "zamba2": Known("Zamba2 1.2B, 2.7B, 7B", "4k"),
}

# A model of a family to type, as hf://NAME: small ones, where there are several.
NAMES = {
    "apertus": "swiss-ai/Apertus-8B-Instruct-2509",
    "arcee": "arcee-ai/AFM-4.5B",
    "bart": "facebook/bart-large-cnn",
    "bert": "sentence-transformers/all-MiniLM-L6-v2",
    "bitnet": "microsoft/bitnet-b1.58-2B-4T",
    "bloom": "bigscience/bloomz-560m",
    "cohere2": "CohereLabs/c4ai-command-r7b-12-2024",
    "deepseek_v2": "deepseek-ai/DeepSeek-V2-Lite-Chat",
    "distilbert": "sentence-transformers/multi-qa-distilbert-cos-v1",
    "ernie4_5": "baidu/ERNIE-4.5-0.3B-PT",
    "eurobert": "EuroBERT/EuroBERT-210m",
    "exaone4": "LGAI-EXAONE/EXAONE-4.0-1.2B",
    "falcon_h1": "tiiuae/Falcon-H1-0.5B-Instruct",
    "gemma": "google/gemma-2b-it",
    "gemma2": "google/gemma-2-2b-it",
    "gemma3_text": "google/gemma-3-1b-it",
    "gpt2": "openai-community/gpt2",
    "gpt_neox": "EleutherAI/pythia-160m",
    "gpt_oss": "openai/gpt-oss-20b",
    "granite": "ibm-granite/granite-3.3-2b-instruct",
    "granitemoehybrid": "ibm-granite/granite-4.0-h-tiny",
    "lfm2": "LiquidAI/LFM2-1.2B",
    "llama": "HuggingFaceTB/SmolLM2-360M-Instruct",
    "mamba": "state-spaces/mamba-130m-hf",
    "mistral": "mistralai/Mistral-7B-Instruct-v0.3",
    "mixtral": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "modernbert": "Alibaba-NLP/gte-modernbert-base",
    "mpnet": "sentence-transformers/all-mpnet-base-v2",
    "nomic_bert": "nomic-ai/nomic-embed-text-v1.5",
    "olmo2": "allenai/OLMo-2-0425-1B-Instruct",
    "olmoe": "allenai/OLMoE-1B-7B-0125-Instruct",
    "opt": "facebook/opt-125m",
    "phi": "microsoft/phi-2",
    "phi3": "microsoft/Phi-4-mini-instruct",
    "qwen2": "Qwen/Qwen2.5-1.5B-Instruct",
    "qwen3": "Qwen/Qwen3-0.6B",
    "qwen3_moe": "Qwen/Qwen3-30B-A3B-Instruct-2507",
    "roberta": "sentence-transformers/all-distilroberta-v1",
    "smollm3": "HuggingFaceTB/SmolLM3-3B",
    "stablelm": "stabilityai/stablelm-2-1_6b-chat",
    "starcoder2": "bigcode/starcoder2-3b",
    "t5": "google/flan-t5-base",
    "xlm-roberta": "BAAI/bge-m3",
}
