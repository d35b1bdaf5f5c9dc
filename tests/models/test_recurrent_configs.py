"""Fields that published configurations of recurrent models have, and what these cannot be."""

from __future__ import annotations

import json
import math

import pytest
import torch
import transformers

from wherry.compiler.library.export import parameters
from wherry.compiler.load import families
from wherry.errors import ModelError
from wherry.models.arch import plan, read_config

DENSE = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "vocab_size": 320}
HEADS = {**DENSE, "num_attention_heads": 4, "num_key_value_heads": 2}
INIT = {"time_step_floor": 1e-4, "time_step_max": 0.1, "time_step_min": 0.001}
MAMBA2 = {
    "mamba_chunk_size": 256,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_head": 32,
    "mamba_d_state": 16,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_n_heads": 4,
    "mamba_proj_bias": False,
}
GRANITE = {
    **HEADS,
    **MAMBA2,
    "attention_bias": False,
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12,
    "init_method": "mup",
    "layer_types": ["mamba", "attention", "mamba", "mamba"],
    "logits_scaling": 6,
    "normalization_function": "rmsnorm",
    "num_experts_per_tok": 6,
    "num_local_experts": 64,
    "position_embedding_type": "nope",
    "residual_multiplier": 0.22,
    "rope_scaling": None,
    "rope_theta": 10000,
    "router_aux_loss_coef": 0.0,
    "shared_intermediate_size": 1024,
}
NEMOTRON = {
    **{name: value for name, value in HEADS.items() if name != "num_hidden_layers"},
    **INIT,
    "chunk_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "head_dim": 128,
    "hybrid_override_pattern": "ME*-",
    "layer_norm_epsilon": 1e-05,
    "mamba_head_dim": 64,
    "mamba_hidden_act": "silu",
    "mamba_num_heads": 8,
    "mamba_proj_bias": False,
    "mamba_ssm_cache_dtype": "float32",
    "mlp_hidden_act": "relu2",
    "moe_intermediate_size": 48,
    "moe_shared_expert_intermediate_size": 96,
    "n_group": 1,
    "n_groups": 8,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "norm_eps": 1e-05,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 4,
    "num_logits_to_keep": 1,
    "partial_rotary_factor": 1.0,
    "rescale_prenorm_residual": True,
    "residual_in_fp32": False,
    "rope_theta": 10000,
    "routed_scaling_factor": 2.5,
    "sliding_window": None,
    "ssm_state_size": 128,
    "time_step_limit": [0.0, math.inf],
    "topk_group": 1,
    "use_bias": False,
    "use_conv_bias": True,
    "use_mamba_kernels": True,
}
FALCON = {
    **HEADS,
    **MAMBA2,
    "attn_layer_indices": None,
    "attention_in_multiplier": 1.0,
    "embedding_multiplier": 5.656854249492381,
    "head_dim": 64,
    "key_multiplier": 0.39,
    "mamba_d_ssm": 128,
    "mamba_norm_before_gate": False,
    "mamba_rms_norm": False,
    "mamba_use_mlp": True,
    "mlp_multipliers": [0.88, 0.58],
    "rope_theta": 100000000000.0,
    "ssm_multipliers": [0.35, 0.25, 0.35, 0.5, 0.35],
}
KIMI = {
    **HEADS,
    "first_k_dense_replace": 1,
    "head_dim": 72,
    "kv_lora_rank": 512,
    "linear_attn_config": {
        "full_attn_layers": [4],
        "head_dim": 128,
        "kda_layers": [1, 2, 3],
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
    "mla_use_nope": True,
    "model_max_length": 1048576,
    "moe_intermediate_size": 1024,
    "moe_layer_freq": 1,
    "moe_renormalize": True,
    "moe_router_activation_func": "sigmoid",
    "num_expert_group": 1,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_nextn_predict_layers": 0,
    "num_shared_experts": 1,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "routed_scaling_factor": 2.446,
    "topk_group": 1,
    "use_grouped_topk": True,
    "v_head_dim": 128,
}
MAMBA = {
    **DENSE,
    **INIT,
    "conv_kernel": 4,
    "d_inner": 128,
    "d_model": 64,
    "expand": 2,
    "fused_add_norm": True,
    "n_layer": 4,
    "pad_vocab_size_multiple": 8,
    "residual_in_fp32": True,
    "rms_norm": True,
    "ssm_cfg": {},
    "state_size": 16,
    "time_step_init_scheme": "random",
    "time_step_rank": 48,
    "time_step_scale": 1.0,
    "use_bias": False,
    "use_conv_bias": True,
}
ZAMBA2 = {
    **HEADS,
    "adapter_rank": 128,
    "add_bias_linear": False,
    "attention_head_dim": 32,
    "attention_hidden_size": 128,
    "chunk_size": 256,
    "hybrid_layer_ids": [1, 3],
    "intermediate_size": 256,
    "kv_channels": 16,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
    "mamba_d_conv": 4,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_headdim": 16,
    "mamba_ngroups": 1,
    "n_mamba_heads": 8,
    "num_key_value_heads": 4,
    "num_logits_to_keep": 1,
    "num_mem_blocks": 1,
    "num_query_groups": 4,
    "rope_theta": 10000,
    **INIT,
    "time_step_limit": None,
    "use_conv_bias": True,
    "use_long_context": False,
    "use_mamba_kernels": True,
    "use_mem_eff_path": False,
    "use_mem_rope": True,
    "use_shared_attention_adapter": True,
    "use_shared_mlp_adapter": True,
}
GRIFFIN = {
    **HEADS,
    "_block_types": ["recurrent", "recurrent", "attention"],
    "conv1d_width": 4,
    "embeddings_scale_by_sqrt_dim": True,
    "final_w_init_variance_scale": 0.07,
    "hidden_activation": "gelu_pytorch_tanh",
    "partial_rotary_factor": 0.5,
    "rope_theta": 10000.0,
    "w_init_variance_scale": 0.01,
}
PUBLISHED = {
    "granitemoehybrid": GRANITE,
    "nemotron_h": NEMOTRON,
    "falcon_h1": FALCON,
    "kimi_linear": KIMI,
    "mamba": MAMBA,
    "zamba2": ZAMBA2,
    "recurrent_gemma": GRIFFIN,
}


def read(name, **changes):
    return read_config(families()[name].config, {**PUBLISHED[name], **changes})


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_fields_are_known(name):
    assert read(name).num_hidden_layers == 4


def test_layers_are_said_in_several_ways():
    kinds = ["linear_attention", "moe", "full_attention", "mlp"]
    assert read("nemotron_h").layer_types == tuple(kinds)
    listed = {"hybrid_override_pattern": None, "num_hidden_layers": None}
    older = ["mamba", "moe", "attention", "mlp"]
    assert read("nemotron_h", **listed, layers_block_type=older) == read("nemotron_h")
    assert [read("granitemoehybrid").attends(i) for i in range(4)] == [False, True, False, False]
    assert read("kimi_linear").layer_types == ("linear_attention",) * 3 + ("full_attention",)
    assert read("kimi_linear").mlp_layer_types == ("dense", *["sparse"] * 3)
    assert [read("recurrent_gemma").attends(i) for i in range(4)] == [False, False, True, False]


def test_an_infinite_step_is_no_limit():
    written = [0.0, {"__float__": "Infinity"}]  # as transformers 5 writes it
    for limit in (written, json.loads("[0.0, Infinity]"), None):
        assert read("granitemoehybrid", time_step_limit=limit).mamba2().spec.most_step is None
    spec = read("granitemoehybrid", time_step_limit=[0.5, 2.0]).mamba2().spec
    assert (spec.least_step, spec.most_step) == (0.5, 2.0)


def test_copies_of_a_shared_block_are_left_out():
    """Transformers' own names of all tensors, with a block for each layer that uses it."""
    hf = transformers.AutoConfig.for_model("zamba2", **PUBLISHED["zamba2"])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(hf)
    tensors = {name: tuple(w.shape) for name, w in model.state_dict().items()}
    arch, config = families()["zamba2"], read("zamba2")
    planned = plan(arch, parameters(arch, config), tensors, config)
    copies = [name for name in tensors if name.startswith("model.layers.3.shared_transformer.")]
    assert copies and set(planned.dropped) == {*copies, "lm_head.weight"}


def test_recurrences_without_attention_have_no_end():
    assert read("mamba").longest > 2**20


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("granitemoehybrid", {"mamba_n_heads": 5}, "mamba_n_heads: 5 of 32 elements found"),
        ("granitemoehybrid", {"mamba_n_groups": 3}, "mamba_n_groups: 3 does not divide"),
        ("granitemoehybrid", {"mamba_d_conv": 1}, "mamba_d_conv: 1 found, minimum is 2"),
        ("granitemoehybrid", {"time_step_limit": [2.0, 1.0]}, "time_step_limit: found"),
        ("granitemoehybrid", {"layer_types": ["mamba"]}, "layer_types: 1 found for the 4"),
        ("nemotron_h", {"hybrid_override_pattern": "ME*Q"}, "layer_types: found Q, supported"),
        ("nemotron_h", {"norm_eps": 1e-3}, "norm_eps: found 0.001, but layer_norm_epsilon"),
        ("nemotron_h", {"mlp_hidden_act": "silu"}, "mlp_hidden_act: found 'silu'"),
        ("falcon_h1", {"ssm_multipliers": [1.0]}, "ssm_multipliers: 1 found, expected 5"),
        ("kimi_linear", {"mla_use_nope": False}, "mla_use_nope: found False"),
        ("zamba2", {"attention_head_dim": 16}, "heads have 64 elements, expected 2"),
        ("zamba2", {"num_key_value_heads": 2}, "num_key_value_heads: 2 found, and adapters"),
        ("zamba2", {"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        ("zamba2", {"layers_block_type": ["mamba"]}, "layer_types: 1 found for the 4"),
        ("zamba2", {"use_long_context": True}, "use_long_context: found True"),
        ("mamba", {"conv_kernel": 1}, "conv_kernel: a convolution of 1 tap"),
        ("recurrent_gemma", {"_block_types": ["linear"]}, "block_types: found linear"),
    ],
)
def test_what_they_cannot_be(name, changes, said):
    with pytest.raises(ModelError, match=said):
        read(name, **changes)
