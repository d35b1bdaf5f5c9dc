"""Edits naga's SPIR-V for kernels with cooperative matrices.

Opcodes and enumerants are those of the SPIR-V specification, sections 2.3, 3.7, 3.20, 3.25, 3.26
and 3.42, and of the extension SPV_KHR_cooperative_matrix.
"""

from __future__ import annotations

from .code import bytes_of, instructions, words_of

_VERSION, _BOUND, _HEADER_WORDS = 1, 3, 5
# version that the memory model and the matrices require; any Vulkan 1.1 reads it
_SPIRV_1_3 = 0x00010300
_OP_CAPABILITY, _OP_CONSTANT, _OP_TYPE_ARRAY, _OP_TYPE_POINTER = 17, 43, 28, 32
_OP_VARIABLE, _OP_LOAD, _OP_STORE, _OP_ACCESS_CHAIN, _OP_DECORATE = 59, 61, 62, 65, 71
_OP_CONTROL_BARRIER = 224
_OP_MATRIX_TYPE, _OP_MATRIX_LOAD, _OP_MATRIX_STORE = 4456, 4457, 4458
_ARRAY_STRIDE, _WORKGROUP = 6, 4
_NOT_NEEDED = (4434, 4436)  # capabilities UniformAndStorageBuffer16BitAccess, StorageInputOutput16
_NON_PRIVATE = 0x20  # memory operand NonPrivatePointer: visible to other threads
# Memory semantics of a barrier: WorkgroupMemory, AcquireRelease, MakeAvailable, MakeVisible.
_SHARED = 0x100 | 0x8 | 0x2000 | 0x4000


def with_shape(code: bytes, m: int, n: int, k: int) -> bytes:
    """Give naga's 16 x 16 matrices the sizes of c[m, n] += a[m, k] b[k, n].

    %6 = OpTypeCooperativeMatrixKHR %half %subgroup %16 %16 %A
    %7 = OpConstant %uint m   %8 = OpConstant %uint k
    %6 = OpTypeCooperativeMatrixKHR %half %subgroup %7 %8 %A
    """
    words = words_of(code)
    values, kept, bound = {}, list(words[:_HEADER_WORDS]), words[_BOUND]
    own: dict[int, int] = {}  # value -> id of the constant that this function adds
    for opcode, instruction in instructions(words):
        if opcode == _OP_CONSTANT:
            values[instruction[2]] = instruction[1], instruction[3]
        if opcode == _OP_MATRIX_TYPE:
            _, result, element, scope, rows, _, use = instruction
            number = values[rows][0]  # SPIR-V type of the matrix sizes
            for size in (m, n, k):
                if size not in own:
                    own[size], bound = bound, bound + 1
                    kept += (4 << 16 | _OP_CONSTANT, number, own[size], size)
            rows_columns = ((m, k), (k, n), (m, n))[values[use][1]]
            instruction = (
                instruction[0], result, element, scope, *(own[size] for size in rows_columns), use
            )  # fmt: skip
        kept += instruction
    kept[_BOUND] = bound
    return bytes_of(kept)


def for_vulkan(code: bytes) -> bytes:
    """Edit a module for Vulkan with matrices, which requires Vulkan's memory model.

    - Version 1.3, because naga writes 1.0, which neither extension supports.
    - No strides of arrays in shared memory, which has no explicit layout.
    - No unused capabilities, which devices may lack.
    - Shared memory is visible to other threads: in this memory model each load, store and barrier
    must have an operand for that, which naga omits.
    """
    words = words_of(code)
    shared, unlaid = _shared(words)
    barriers = {i[3] for opcode, i in instructions(words) if opcode == _OP_CONTROL_BARRIER}
    bound = words[_BOUND]
    kept = list(words[:_HEADER_WORDS])
    kept[_VERSION], kept[_BOUND] = _SPIRV_1_3, bound + len(barriers)
    # a new constant, because others may use the old one
    own = {old: bound + i for i, old in enumerate(sorted(barriers))}
    for opcode, instruction in instructions(words):
        if opcode == _OP_CAPABILITY and instruction[1] in _NOT_NEEDED:
            continue
        if opcode == _OP_DECORATE and instruction[1] in unlaid and instruction[2] == _ARRAY_STRIDE:
            continue
        if opcode == _OP_CONTROL_BARRIER:
            instruction = (*instruction[:3], own[instruction[3]])
        kept += _seen_by_others(opcode, instruction, shared)
        if opcode == _OP_CONSTANT and instruction[2] in own:
            kept += (instruction[0], instruction[1], own[instruction[2]], _SHARED)
    return bytes_of(kept)


def _shared(words: tuple[int, ...]) -> tuple[set[int], set[int]]:
    """Return the ids of pointers into shared memory, and of array types there."""
    pointers: set[int] = set()
    pointees: dict[int, int] = {}
    arrays: set[int] = set()
    unlaid: set[int] = set()
    for opcode, instruction in instructions(words):
        if opcode == _OP_TYPE_ARRAY:
            arrays.add(instruction[1])
        elif opcode == _OP_TYPE_POINTER and instruction[2] == _WORKGROUP:
            pointees[instruction[1]] = instruction[3]
        elif opcode in (_OP_VARIABLE, _OP_ACCESS_CHAIN) and instruction[1] in pointees:
            pointers.add(instruction[2])
            unlaid.add(pointees[instruction[1]])
    return pointers, unlaid & arrays


def _seen_by_others(opcode: int, instruction: tuple[int, ...], shared: set[int]) -> tuple[int, ...]:
    """Return the instruction, with a memory operand if it loads from or stores to shared memory."""
    # Opcode -> index of its pointer, and number of its words without a memory operand.
    places = {
        _OP_LOAD: (3, 4), _OP_STORE: (1, 3), _OP_MATRIX_LOAD: (3, 6), _OP_MATRIX_STORE: (1, 5)
    }  # fmt: skip
    if opcode not in places:
        return instruction
    pointer, length = places[opcode]
    if instruction[pointer] not in shared:
        return instruction
    assert len(instruction) == length, "naga writes no memory operands"
    return ((length + 1) << 16 | opcode, *instruction[1:], _NON_PRIVATE)
