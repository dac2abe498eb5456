"""Weights of 4 bits: taken apart into bytes in RAM first, or in the loops that read them."""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Access, Kernel, Loop, Lowered, Operand
from twin.network.graph import GraphLayer
from twin.network.operators import traits
from twin.runtimes.lowering import Lowering, Site
from twin.runtimes.lowering.blocks import CALL, RETURN, block, build_kernel, plain, read_code

_CODE = read_code(__file__)["packed"]

_ALIGNMENT_BYTES = 16


_ROWS_AT_ONCE = 2
"""Outputs a convolution or product of CMSIS-NN computes from weights that were taken apart once."""


def take_apart(lowering: Lowering, site: GraphLayer, *, in_loops: bool) -> Lowering:
    """Return a lowering of a layer whose weights are of 4 bits.

    Parameters
    ----------
    lowering
        Of the operator on 8-bit weights.
    in_loops
        Whether the library's loops take weights apart each time they read them.
    """
    return (split_in_loops if in_loops else unpack_weights)(lowering, site)


def split_in_loops(lowering: Lowering, site: GraphLayer) -> Lowering:
    """Return a lowering whose loops take weights apart as they read them.

    Notes
    -----
    Two weights are split for every two outputs of a convolution or product, for each output of a
    depthwise one; a byte is still loaded for each weight (assumed).

    References
    ----------
    ARM-software/CMSIS-NN, arm_nn_mat_mult_kernel_s4_s16.c, arm_nn_vec_mat_mult_t_s4.c.
    """
    weights = site.weights
    rows = site.output.elements // site.output.channels
    times = rows if traits(site.layer).is_depthwise else -(-rows // _ROWS_AT_ONCE)

    def lower(site: Site) -> Lowered:
        first, *others = lowering.lower(site)
        split = block("split", _CODE.split[plain(site.dialect)],
                      times * -(-weights.elements // 2), cause="weight_decode")
        return replace(first, blocks=(*first.blocks, split)), *others

    return replace(lowering, lower=lower)


def unpack_weights(lowering: Lowering, site: GraphLayer) -> Lowering:
    """Return a lowering that takes packed weights apart first.

    Parameters
    ----------
    lowering
        Of the operator on 8-bit weights.
    site
        What is lowered; its weights are of 4 bits.

    Notes
    -----
    TFLite Micro's portable kernels do so at every call, into scratch of the arena.

    References
    ----------
    tensorflow/tflite-micro, tensorflow/lite/kernels/internal/portable_tensor_utils.cc,
    UnpackDenseInt4IntoInt8.
    """
    weights = site.weights
    room = -(-weights.elements // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES

    def lower(site: Site) -> Lowered:
        packed, scratch = site.operand("weights"), site.operand("scratch")
        unpacked = Operand(name="unpacked", role="scratch", memory=scratch.memory,
                           address=scratch.address, size_bytes=weights.elements)
        packed = replace(packed, size_bytes=weights.size_bytes)
        first = _unpack(replace(site, operands=(packed, unpacked)), weights.size_bytes)
        left = scratch.size_bytes - room
        others = [one for one in site.operands if one.name not in ("weights", "scratch")]
        if left > 0:
            others.append(replace(scratch, address=scratch.address + room, size_bytes=left))
        bytewise = replace(unpacked, name="weights", role="weights")
        return first, *lowering.lower(replace(site, operands=(bytewise, *others)))

    def scratch_bytes(site: Site) -> int:
        return lowering.scratch_bytes(site) + room

    return Lowering(lower=lower, scratch_bytes=scratch_bytes)


def _unpack(site: Site, packed_bytes: int) -> Kernel:
    dialect = site.dialect
    nest = Loop(extent=packed_bytes, body=(
        Access(operand="weights", write=False, width_bytes=1, offset_bytes=0, steps_bytes=(1,)),
        Access(operand="unpacked", write=True, width_bytes=1, offset_bytes=0, steps_bytes=(2,)),
        Access(operand="unpacked", write=True, width_bytes=1, offset_bytes=1, steps_bytes=(2,))))
    return build_kernel(
        "UnpackDenseInt4IntoInt8", "data_movement", site,
        (block("call", f"{CALL[dialect]}; {RETURN[dialect]}", 1, cause="weight_decode"),
         block("pair", _CODE.pair[plain(dialect)], packed_bytes, 1, cause="weight_decode")),
        (nest,), assumed=True)
