"""The GGUF architectures with recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Mapping

from . import changes
from .family import GgufFamily
from .sparse import GRANITE, GRANITE_MOE, LOCAL, SMALL

_DELTA = {
    "post_attention_norm": "post_attention_layernorm",
    "attn_qkv": "linear_attn.in_proj_qkv",
    "attn_gate": "linear_attn.in_proj_z",
    "ssm_alpha": "linear_attn.in_proj_a",
    "ssm_beta": "linear_attn.in_proj_b",
    "ssm_conv1d": "linear_attn.conv1d",
    "ssm_a": "linear_attn.A_log",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj",
}
# The file has in_proj_qkv and in_proj_z, which are one matrix in a checkpoint.
_NEXT = {**_DELTA, "ssm_ba": "linear_attn.in_proj_ba"}
_DELTA_FIELDS = {
    "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.state_size": "linear_key_head_dim",
    "ssm.group_count": "linear_num_key_heads",
    "ssm.time_step_rank": "linear_num_value_heads",
}
_BOTH_CHANGES = {
    **dict.fromkeys(
        ("attn_norm", "post_attention_norm", "attn_q_norm", "attn_k_norm", "output_norm"),
        changes.minus_one,
    ),
    **changes.ONE_ROW,
}
_DELTA_CHANGES = {
    **_BOTH_CHANGES,
    "attn_qkv": changes.qkv_rows,
    "attn_gate": changes.value_rows,
    "ssm_alpha": changes.heads,
    "ssm_beta": changes.heads,
    "ssm_conv1d": changes.qkv_taps,
    "ssm_a": changes.logarithm,
    "ssm_dt": changes.heads,
    "ssm_out": changes.value_columns,
}
_CONV = {
    "attn_norm": "operator_norm",
    "ffn_norm": "ffn_norm",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
    "attn_output": "self_attn.out_proj",
    "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm",
    "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3",
    "ffn_down": "feed_forward.w2",
    "ffn_gate_inp": "feed_forward.gate",
    "ffn_gate_exps": "feed_forward.experts.{}.w1",
    "ffn_up_exps": "feed_forward.experts.{}.w3",
    "ffn_down_exps": "feed_forward.experts.{}.w2",
    "exp_probs_b.bias": "feed_forward.expert_bias",
}
# Older files have the last norm under the other name.
_CONV_OUTER = dict.fromkeys(("token_embd_norm", "output_norm"), "model.embedding_norm")
# Feed-forwards without experts have the names of llama.cpp's dense models.
_GRANITE = {
    **GRANITE_MOE,
    "ssm_in": "mamba.in_proj",
    "ssm_conv1d": "mamba.conv1d",
    "ssm_a": "mamba.A_log",
    "ssm_d": "mamba.D",
    "ssm_dt.bias": "mamba.dt_bias",
    "ssm_norm": "mamba.norm",
    "ssm_out": "mamba.out_proj",
    "ffn_gate": "shared_mlp.gate_proj",
    "ffn_up": "shared_mlp.up_proj",
    "ffn_down": "shared_mlp.output_linear",
}
_LENGTHS = frozenset({"attention.head_count_kv"})

HYBRIDS: Mapping[str, GgufFamily] = {
    "qwen35": GgufFamily(
        model_type="qwen3_5_text",
        classes="Qwen3_5ForCausalLM",
        layer=_DELTA,
        fields=_DELTA_FIELDS,
        varying=_LENGTHS,
        changes=_DELTA_CHANGES,
    ),
    "qwen35moe": GgufFamily(
        model_type="qwen3_5_moe_text",
        classes="Qwen3_5MoeForCausalLM",
        layer=_DELTA,
        fields={
            **_DELTA_FIELDS,
            **SMALL,
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        },
        varying=_LENGTHS,
        changes=_DELTA_CHANGES,
    ),
    "qwen3next": GgufFamily(
        model_type="qwen3_next",
        classes="Qwen3NextForCausalLM",
        layer=_NEXT,
        fields={
            **_DELTA_FIELDS,
            **SMALL,
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        },
        varying=_LENGTHS,
        changes={
            **_BOTH_CHANGES,
            "ssm_conv1d": changes.taps,
            "ssm_a": changes.logarithm_in_groups,
        },
    ),
    "lfm2": GgufFamily(
        model_type="lfm2",
        classes="Lfm2ForCausalLM",
        outer=_CONV_OUTER,
        layer=_CONV,
        fields={"shortconv.l_cache": "conv_L_cache"},
        fixed={"block_auto_adjust_ff_dim": False},
        varying=_LENGTHS,
        changes={"shortconv.conv": changes.taps},
        epsilon=("attention.layer_norm_rms_epsilon", "norm_eps"),
        explicit_head=False,
    ),
    "lfm2moe": GgufFamily(
        model_type="lfm2_moe",
        classes="Lfm2MoeForCausalLM",
        outer=_CONV_OUTER,
        layer=_CONV,
        fields={
            **SMALL,
            "shortconv.l_cache": "conv_L_cache",
            "leading_dense_block_count": "num_dense_layers",
        },
        varying=_LENGTHS,
        changes={"shortconv.conv": changes.taps},
        epsilon=("attention.layer_norm_rms_epsilon", "norm_eps"),
        explicit_head=False,
    ),
    # Granite 4; Bamba, too, whose layers are the same with RoPE and without multipliers.
    "granitehybrid": GgufFamily(
        model_type="granitemoehybrid",
        classes="GraniteMoeHybridForCausalLM",
        layer=_GRANITE,
        fields={
            **LOCAL,
            **GRANITE,
            "ssm.conv_kernel": "mamba_d_conv",
            "ssm.state_size": "mamba_d_state",
            "ssm.group_count": "mamba_n_groups",
            "ssm.time_step_rank": "mamba_n_heads",
        },
        varying=_LENGTHS,
        changes={
            **changes.PAIRED,
            "ssm_conv1d": changes.taps,
            "ssm_a": changes.state_rates,
            "ssm_d": changes.vector,
            "ssm_norm": changes.vector,
        },
    ),
}
