"""Edits SPIR-V modules that naga compiled from WGSL.

Opcodes and enumerants are those of the SPIR-V specification, sections 2.3, 3.7, 3.20, 3.31 and
3.42.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER_WORDS, _WORKGROUP, _NO_CONTRACTION = 5, 4, 42
_OP_CONSTANT_NULL, _OP_VARIABLE, _OP_STORE, _OP_DECORATE, _OP_MEMBER_DECORATE = 46, 59, 62, 71, 72
_CONTRACTED = (129, 131, 133)  # opcodes OpFAdd, OpFSub, OpFMul
_OP_CAPABILITY, _OP_TYPE_FLOAT, _OP_TYPE_POINTER, _OP_FUNCTION = 17, 22, 32, 54
_OP_LOAD, _OP_CONVERT = 61, 115
# Numbers of the capabilities Float16, UniformAndStorageBuffer16BitAccess, StorageInputOutput16.
_FLOAT16, _UNIFORM_16_BIT, _BETWEEN_STAGES = 9, 4434, 4436
_STORAGE_BUFFER = 12  # storage class StorageBuffer


def without_zeroing(code: bytes) -> bytes:
    """Drop the stores that fill shared memory with zeros when a kernel starts.

        if (LocalInvocationIndex == 0) { OpStore %shared %null }        if (...) {}

    WGSL requires them. Our kernels only read shared memory that they wrote; a single thread would
    write all of it, and drivers compile each store to thousands of instructions.
    """
    words = words_of(code)
    nulls, shared, kept = set(), set(), list(words[:_HEADER_WORDS])
    for opcode, instruction in instructions(words):
        operands = instruction[1:]
        if opcode == _OP_CONSTANT_NULL:
            nulls.add(operands[1])
        elif opcode == _OP_VARIABLE and operands[2] == _WORKGROUP:
            shared.add(operands[1])
        if not (opcode == _OP_STORE and operands[0] in shared and operands[1] in nulls):
            kept += instruction
    return bytes_of(kept)


def without_contraction(code: bytes) -> bytes:
    """Forbid drivers to contract a product and a sum.

        %3 = OpFMul %1 %2                     OpDecorate %3 NoContraction   (and of sums)

    Drivers may choose differently in two kernels that must agree; where one rounding is meant,
    kernels call `fma`. WGSL cannot express it.
    """
    words = words_of(code)
    results = [i[2] for opcode, i in instructions(words) if opcode in _CONTRACTED]
    added = [w for r in results for w in (3 << 16 | _OP_DECORATE, r, _NO_CONTRACTION)]
    kept, decorated = list(words[:_HEADER_WORDS]), False
    for opcode, instruction in instructions(words):
        is_decoration = opcode in (_OP_DECORATE, _OP_MEMBER_DECORATE)
        if is_decoration and not decorated:  # decorations may be in any order
            kept, decorated = kept + added, True
        kept += instruction
    assert decorated, "a kernel binds tensors, which is a decoration"
    return bytes_of(kept)


def without_half_arithmetic(code: bytes) -> bytes:
    """Require only that a device loads and stores float16, not that it computes in float16.

        OpCapability Float16                                (none)
        OpCapability UniformAndStorageBuffer16BitAccess     (none)
        OpCapability StorageInputOutput16                   (none)
        OpCapability StorageBuffer16BitAccess               OpCapability StorageBuffer16BitAccess

    Naga requires all four capabilities, and few devices but desktop GPUs have them. Our kernels
    convert loads to float32 and stores to float16, which requires only the last (extension
    SPV_KHR_16bit_storage). A kernel that uses float16 in any other way stays unchanged.
    """
    words = words_of(code)
    if not _only_stores_halves(words):
        return code
    kept, dropped = list(words[:_HEADER_WORDS]), (_FLOAT16, _UNIFORM_16_BIT, _BETWEEN_STAGES)
    for opcode, instruction in instructions(words):
        if opcode != _OP_CAPABILITY or instruction[1] not in dropped:
            kept += instruction
    return bytes_of(kept)


def computes_with_halves(code: bytes) -> bool:
    """Return whether the kernel needs a device with the feature shaderFloat16."""
    decoded = instructions(words_of(code))
    return any(o == _OP_CAPABILITY and i[1] == _FLOAT16 for o, i in decoded)


def _only_stores_halves(words: tuple[int, ...]) -> bool:
    """Return whether float16 values are only loaded from buffers, converted and stored."""
    halves, values, inside = set(), set(), False
    for opcode, instruction in instructions(words):
        operands = instruction[1:]
        inside = inside or opcode == _OP_FUNCTION
        if opcode == _OP_TYPE_FLOAT and operands[1] == 16:
            halves.add(operands[0])
        elif opcode == _OP_TYPE_POINTER and operands[2] in halves:
            if operands[1] != _STORAGE_BUFFER:
                return False
        elif inside and operands and operands[0] in halves:
            if opcode not in (_OP_LOAD, _OP_CONVERT):
                return False
            values.add(operands[1])
        elif inside and values.intersection(operands) and opcode not in (_OP_STORE, _OP_CONVERT):
            return False
    return True


def words_of(code: bytes) -> tuple[int, ...]:
    """Unpack SPIR-V bytes into 32-bit words."""
    return struct.unpack(f"<{len(code) // 4}I", code)


def bytes_of(words: list[int]) -> bytes:
    """Pack 32-bit words into SPIR-V bytes."""
    return struct.pack(f"<{len(words)}I", *words)


def instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield opcode and words of each instruction."""
    at = _HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        yield words[at] & 0xFFFF, words[at : at + length]
        at += length
