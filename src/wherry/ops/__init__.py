"""The static record of each operation, which models construct and targets read.

A record is stored as JSON in an attribute of the reference PrimFunc (`tags`); `SelectKernels` reads
it back and asks a `KernelSet` for a kernel.
"""

from .attention import (
    INTEGER_BITS,
    INTEGERS,
    AttentionShape,
    AttentionSpec,
    BatchTableSpec,
    CacheName,
    GivenName,
    PagedAttentionSpec,
    QkvAttentionSpec,
    RopeAppendSpec,
    page_dtype,
    page_shape,
    qkv_heads,
    value_group,
)
from .elementwise import ActivationName, ActivationSpec, LayerNormSpec, RMSNormSpec, SwiGLUSpec
from .experts import ExpertLinearSpec, GateName, RouteSpec, ScoreName
from .linear import BiasedLinearSpec, EmbeddingSpec, FusedLinearSpec, LinearSpec
from .ragged import PoolingName, PoolSpec, RaggedAttentionSpec
from .record import FloatName, Record, Scheme
from .recurrent import (
    DplrSpec,
    GatedDeltaSpec,
    LinearRecurrenceSpec,
    Mamba2Spec,
    MambaSpec,
    ShortConvSpec,
)
from .sampling import CandidatesSpec, ChoiceSpec

__all__ = [
    "INTEGERS",
    "INTEGER_BITS",
    "ActivationName",
    "ActivationSpec",
    "AttentionShape",
    "AttentionSpec",
    "BatchTableSpec",
    "BiasedLinearSpec",
    "CacheName",
    "CandidatesSpec",
    "ChoiceSpec",
    "DplrSpec",
    "EmbeddingSpec",
    "ExpertLinearSpec",
    "FloatName",
    "FusedLinearSpec",
    "GateName",
    "GatedDeltaSpec",
    "GivenName",
    "LayerNormSpec",
    "LinearRecurrenceSpec",
    "LinearSpec",
    "Mamba2Spec",
    "MambaSpec",
    "PagedAttentionSpec",
    "PoolSpec",
    "PoolingName",
    "QkvAttentionSpec",
    "RMSNormSpec",
    "RaggedAttentionSpec",
    "Record",
    "RopeAppendSpec",
    "RouteSpec",
    "Scheme",
    "ScoreName",
    "ShortConvSpec",
    "SwiGLUSpec",
    "page_dtype",
    "page_shape",
    "qkv_heads",
    "value_group",
]
