"""The dense GGUF architectures; Gemma 4 may have experts in parallel with its feed-forwards."""

from __future__ import annotations

from collections.abc import Mapping

from . import changes
from .family import GgufFamily
from .sparse import GRANITE

# Norms before and after attention and feed-forward -> their names in Gemma 2.
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_AFTER = {  # norms only after attention and feed-forward -> their names in OLMo 2
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_LAYER_INPUTS = {  # Gemma's own token table for each layer
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
}
_LAYER_TABLES = {
    "per_layer_token_embd": "model.embed_tokens_per_layer",
    "per_layer_model_proj": "model.per_layer_model_projection",
    "per_layer_proj_norm": "model.per_layer_projection_norm",
}
_GEMMA3N = {
    **_SANDWICH,
    **_LAYER_INPUTS,
    "altup_correct_coef": "altup.correction_coefs",
    "altup_correct_scale.weight": "altup.correct_output_scale",
    "altup_predict_coef": "altup.prediction_coefs",
    "altup_router": "altup.modality_router",
    "altup_router_norm": "altup.router_norm",
    "laurel_l": "laurel.linear_left",
    "laurel_r": "laurel.linear_right",
    "laurel_post_norm": "laurel.post_laurel_norm",
}
_GEMMA4 = {
    **_SANDWICH,
    **_LAYER_INPUTS,
    "layer_output_scale.weight": "layer_scalar",
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
    "ffn_gate_inp": "router.proj",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "ffn_down_exps.weight": "experts.down_proj",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
}
_BIASES = {"attention_bias": "attn_q.bias"}
_LLAMA = {**_BIASES, "mlp_bias": "ffn_up.bias"}
_LAYER_NORM = ("attention.layer_norm_epsilon", "layer_norm_eps")

DENSE: Mapping[str, GgufFamily] = {
    "llama": GgufFamily(
        model_type="llama", classes="LlamaForCausalLM", changes=changes.PAIRED, flags=_LLAMA
    ),
    # Mistral Small from 3.1 on; Ministral 3 has a temperature besides.
    "mistral3": GgufFamily(
        model_type="mistral",
        classes="MistralForCausalLM",
        fixed={"sliding_window": None},
        changes=changes.PAIRED,
    ),
    "qwen2": GgufFamily(
        model_type="qwen2",
        classes="Qwen2ForCausalLM",
        fixed={"use_sliding_window": False},
        explicit_head=False,
    ),
    "qwen3": GgufFamily(model_type="qwen3", classes="Qwen3ForCausalLM", flags=_BIASES),
    "qwen3vl": GgufFamily(
        model_type="qwen3",
        classes="Qwen3ForCausalLM",
        flags=_BIASES,
        ignored=("n_deepstack_layers",),  # the projector's file says which
    ),
    "gemma": GgufFamily(model_type="gemma", classes="GemmaForCausalLM", changes=changes.SHIFTED),
    "gemma2": GgufFamily(
        model_type="gemma2",
        classes="Gemma2ForCausalLM",
        layer=_SANDWICH,
        fields={
            "attn_logit_softcapping": "attn_logit_softcapping",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        changes=changes.SHIFTED,
    ),
    "gemma3": GgufFamily(
        model_type="gemma3_text",
        classes="Gemma3ForCausalLM",
        layer=_SANDWICH,
        fields={"final_logit_softcapping": "final_logit_softcapping"},
        changes=changes.SHIFTED,
    ),
    "gemma3n": GgufFamily(
        model_type="gemma3n_text",
        classes="Gemma3nForCausalLM",
        outer={
            **_LAYER_TABLES,
            "altup_proj": "model.altup_projections.{}",
            "altup_unembd_proj": "model.altup_unembed_projections.{}",
        },
        layer=_GEMMA3N,
        fields={
            "final_logit_softcapping": "final_logit_softcapping",
            "attention.shared_kv_layers": "num_kv_shared_layers",
            "embedding_length_per_layer_input": "hidden_size_per_layer_input",
            "altup.active_idx": "altup_active_idx",
            "altup.num_inputs": "altup_num_inputs",
        },
        varying=frozenset({"feed_forward_length"}),
        flags=_BIASES,
    ),
    "gemma4": GgufFamily(
        model_type="gemma4_text",
        classes="Gemma4ForCausalLM",
        outer=_LAYER_TABLES,
        layer=_GEMMA4,
        fields={
            "final_logit_softcapping": "final_logit_softcapping",
            "attention.sliding_window": "sliding_window",
            "attention.shared_kv_layers": "num_kv_shared_layers",
            "embedding_length_per_layer_input": "hidden_size_per_layer_input",
            "expert_count": "num_experts",
            "expert_used_count": "top_k_experts",
            "expert_feed_forward_length": "moe_intermediate_size",
        },
        varying=frozenset({"feed_forward_length", "attention.head_count_kv"}),
        flags=_BIASES,
        own_heads=True,
    ),
    "phi3": GgufFamily(
        model_type="phi3",
        classes="Phi3ForCausalLM",
        layer={"ffn_up": "mlp.gate_up_proj"},
        explicit_head=False,
    ),
    "granite": GgufFamily(
        model_type="granite",
        classes="GraniteForCausalLM",
        fields=GRANITE,
        changes=changes.PAIRED,
        flags=_LLAMA,
    ),
    "olmo2": GgufFamily(
        model_type="olmo2", classes="Olmo2ForCausalLM", layer=_AFTER, flags=_BIASES
    ),
    "smollm3": GgufFamily(
        model_type="smollm3", classes="SmolLM3ForCausalLM", changes=changes.PAIRED, flags=_LLAMA
    ),
    "seed_oss": GgufFamily(
        model_type="seed_oss",
        classes="SeedOssForCausalLM",
        layer={"post_attention_norm": "post_attention_layernorm"},
        flags={
            **_BIASES,
            "attention_out_bias": "attn_output.bias",
            "mlp_bias": "ffn_up.bias",
        },
    ),
    "ernie4_5": GgufFamily(
        model_type="ernie4_5", classes="Ernie4_5ForCausalLM", flags={"use_bias": "attn_output.bias"}
    ),
    "arcee": GgufFamily(
        model_type="arcee",
        classes="ArceeForCausalLM",
        fixed={"hidden_act": "relu2"},
        changes=changes.PAIRED,
        flags=_LLAMA,
    ),
    "glm4": GgufFamily(
        model_type="glm4",
        classes="Glm4ForCausalLM",
        layer={
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
        },
        flags=_BIASES,
    ),
    "exaone4": GgufFamily(
        model_type="exaone4", classes="Exaone4ForCausalLM", layer=_AFTER, explicit_head=False
    ),
    "command-r": GgufFamily(
        model_type="cohere",
        classes="CohereForCausalLM",
        fields={"logit_scale": "logit_scale"},
        flags={**_BIASES, "use_qk_norm": "attn_q_norm.weight"},
        epsilon=_LAYER_NORM,
        explicit_head=False,
    ),
    "cohere2": GgufFamily(
        model_type="cohere2",
        classes="Cohere2ForCausalLM",
        fields={"logit_scale": "logit_scale", "attention.sliding_window": "sliding_window"},
        epsilon=_LAYER_NORM,
    ),
    "starcoder2": GgufFamily(
        model_type="starcoder2",
        classes="Starcoder2ForCausalLM",
        layer={"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        fixed={"sliding_window": None},
        flags={"use_bias": "attn_q.bias"},
        epsilon=("attention.layer_norm_epsilon", "norm_epsilon"),
        explicit_head=False,
    ),
    "stablelm": GgufFamily(
        model_type="stablelm",
        classes="StableLmForCausalLM",
        fields={"use_parallel_residual": "use_parallel_residual"},
        flags={"use_qkv_bias": "attn_q.bias"},
        epsilon=_LAYER_NORM,
        explicit_head=False,
    ),
    "nemotron": GgufFamily(
        model_type="nemotron",
        classes="NemotronForCausalLM",
        fixed={"hidden_act": "relu2"},
        changes=changes.SHIFTED,
        flags=_LLAMA,
        epsilon=("attention.layer_norm_epsilon", "norm_eps"),
    ),
    "jais2": GgufFamily(
        model_type="jais2",
        classes="Jais2ForCausalLM",
        fixed={"hidden_act": "relu2"},
        flags=_LLAMA,
        epsilon=_LAYER_NORM,
    ),
    "hunyuan-dense": GgufFamily(
        model_type="hunyuan_v1_dense",
        classes="HunYuanDenseV1ForCausalLM",
        layer={
            "attn_q_norm": "self_attn.query_layernorm",
            "attn_k_norm": "self_attn.key_layernorm",
        },
        flags=_BIASES,
    ),
}
MINISTRAL3 = GgufFamily(
    model_type="ministral3", classes="Ministral3ForCausalLM", changes=changes.PAIRED
)
# OLMo 3 has OLMo 2's architecture, and a window.
OLMO3 = GgufFamily(model_type="olmo3", classes="Olmo3ForCausalLM", layer=_AFTER, flags=_BIASES)
