"""What Gemma 4's config.json may say of its two kinds of layers."""

from __future__ import annotations

import pytest

from wherry.errors import ModelError
from wherry.models.arch import read_config
from wherry.models.lineages.gemma4 import Gemma4Config
from wherry.passes.kv_cache import KVCache, KvGroup

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "vocab_size_per_layer_input": 300,
    "head_dim": 16,
}
FULL = (5, 11)  # without layer_types


def read(**changes):
    return read_config(Gemma4Config, SMALL | changes)


def shapes(config):
    return [(s.kv_heads, s.head_dim, s.kv) for s in map(config.attention_shape, range(12))]


def test_without_a_word_of_them_layers_are_of_two_kinds():
    config = read()
    full = [i for i in range(12) if not config.windowed(i)]
    assert tuple(full) == FULL
    assert shapes(config)[4:6] == [(2, 16, "both"), (2, 512, "both")]
    assert (config.local_rope.kind, config.rope.kind) == ("default", "proportional")
    assert config.attention_shape(5).inv_freq[63] > 0 == config.attention_shape(5).inv_freq[64]


def test_both_spellings_of_what_layers_without_a_window_have():
    own = {"head_dim": 32, "num_key_value_heads": 1}
    new = read(attention_k_eq_v=True, per_layer_config={"05": own, "11": own})
    old = read(attention_k_eq_v=True, global_head_dim=32, num_global_key_value_heads=1)
    assert new == old
    assert shapes(new)[4:6] == [(2, 16, "both"), (1, 32, "keys")]
    # As transformers has it: heads of their own with keys as values alone.
    assert read(num_global_key_value_heads=1, global_head_dim=32).attention_shape(5).kv_heads == 2
    assert read(per_layer_config={}).attention_shape(5).head_dim == 16


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"per_layer_config": {"5": {"head_dim": 32}}}, "per_layer_config: "),
        ({"per_layer_config": {str(i): {"rope": 1} for i in FULL}}, "per_layer_config: "),
        ({"use_bidirectional_attention": "all"}, "found 'all', supported is 'vision'"),
        ({"num_kv_shared_layers": 7}, "no layer before them has one of each kind"),
        ({"num_kv_shared_layers": 12}, "no layer before them has one of each kind"),
        ({"enable_moe_block": True}, "num_experts: missing, with enable_moe_block"),
        ({"vocab_size_per_layer_input": 200}, "200 is less than vocab_size, 300"),
        ({"global_head_dim": 33}, "global_head_dim: 33 dimensions rotate"),
        (
            {"rope_parameters": {"rope_type": "default"}},
            "rope_parameters.rope_type: 'default', an unknown field",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
            "rope_parameters.sliding_attention: 'missing'",
        ),
    ],
)
def test_what_it_cannot_be(changes, said):
    with pytest.raises(ModelError) as caught:
        read(**changes)
    assert said in str(caught.value)


def test_layers_that_share_keep_nothing():
    config = read(num_kv_shared_layers=4, sliding_window=64)
    layers = [*map(config.attention_shape, range(12))]
    assert [s.kv for s in layers] == ["both"] * 8 + ["none"] * 4
    assert [s.cache for s in layers] == [*range(8), 7, 7, 7, 5]
    cache = KVCache.of(layers, "float32")
    assert cache.groups == (KvGroup(None, (5,)), KvGroup(64, (0, 1, 2, 3, 4, 6, 7)))


def test_a_context_within_the_window_leaves_one_group_with_pages_of_two_shapes():
    config = read(max_position_embeddings=256, sliding_window=256, global_head_dim=32)
    cache = KVCache.of(map(config.attention_shape, range(12)), "float32")
    assert [group.window for group in cache.groups] == [None]
    shapes = [(s.group, s.page_shape) for s in cache.state]
    assert shapes == [(0, (2, 2, 16, 16)), (0, (2, 2, 16, 32))]
    assert [s.layers for s in cache.state] == [(0, 1, 2, 3, 4, 6, 7, 8, 9, 10), FULL]
