"""What each mnemonic is: kind of work, timing class, shape of its operands, MAC lanes.

Read by `hwmodels.isa.instruction` only. The names are those of the Armv6-M to Armv8.1-M
Architecture Reference Manuals (Arm DDI 0419, DDI 0403, DDI 0553) and of The RISC-V
Instruction Set Manual, Volume I.

Forms: `binary` first operand written (and read, when only one other is given), `unary` first
written, `merge` first written and read, `compare` all read and flags written, `read` all read,
`write` first written only, `mla` fourth operand is the accumulator, `accumulate` first written and
accumulated into, `long` two written, `long_accumulate` two written and accumulated into, `none`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hwmodels.errors import KernelError, did_you_mean
from hwmodels.isa.operands import LOW_REGISTERS, Operand

CONDITIONS = ("eq", "ne", "cs", "hs", "cc", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt",
              "gt", "le", "al")
"""Arm condition suffixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mnemonic:
    """How to read one mnemonic.

    Parameters
    ----------
    kind : str
        "mac", "mul", "alu", "load", "store", "branch", "call" or "nop".
    timing : str
        Timing class, a key of a core table.
    form : str
        Shape of its operands; see the module's text.
    lanes : int
        Multiply-accumulates of one execution; -1: 128 bits over the data type's width.
    width_bytes : int
        Bytes of one transfer; 0 for arithmetic.
    """

    kind: str
    timing: str
    form: str
    lanes: int = 0
    width_bytes: int = 0


def _table(*rows: tuple[str, str, str, int, str]) -> dict[str, Mnemonic]:
    return {
        name: Mnemonic(kind=kind, timing=timing, form=form, lanes=lanes)
        for kind, timing, form, lanes, names in rows for name in names.split()
    }


def _pairs(stems: str, suffixes: str) -> str:
    return " ".join(stem + suffix for stem in stems.split() for suffix in suffixes.split("|"))


_PARALLEL = _pairs("s q sh u uq uh", "add8|add16|sub8|sub16|asx|sax")
_RV_SHIFTS = "sll srl sra slli srli srai rol rori"
_HALFWORD = "bb|bt|tb|tt"

SCALAR = _table(
    ("alu", "add", "binary", 0, "add sub addw subw rsb addi c.add c.addi c.sub c.addi16sp"
     " c.addi4spn addiw sh1add sh2add sh3add"),
    ("alu", "add", "unary", 0, "adr neg"),
    ("alu", "carry", "binary", 0, "adc sbc"),
    ("alu", "logic", "binary", 0, "and orr eor bic orn or xor andi ori xori slt sltu slti sltiu"
     " c.and c.or c.xor c.andi andn xnor min max minu maxu"),
    ("alu", "logic", "unary", 0, "mvn not sext.b sext.h zext.h seqz snez sltz sgtz"),
    ("alu", "move", "unary", 0, "mov movw mv li lui auipc la c.li c.mv c.lui"),
    ("alu", "move", "merge", 0, "movt"),
    ("alu", "shift", "binary", 0, f"lsl lsr asr ror {_RV_SHIFTS} c.slli c.srli c.srai"),
    ("alu", "shift", "unary", 0, "rrx"),
    ("alu", "shift_long", "long_accumulate", 0, "asrl lsll lsrl sqrshrl uqrshll sqshll uqshll"
     " srshrl urshrl"),
    ("alu", "shift_long", "merge", 0, "sqrshr uqrshl sqshl uqshl srshr urshr"),
    ("alu", "compare", "compare", 0, "cmp cmn tst teq"),
    ("alu", "extend", "unary", 0, "sxtb sxth uxtb uxth"),
    ("alu", "extend_dual", "unary", 0, "sxtb16 uxtb16"),
    ("alu", "extend_add", "extend_add", 0, "sxtab sxtah uxtab uxtah sxtab16 uxtab16"),
    ("alu", "reverse", "unary", 0, "clz rev rev16 revsh rbit cls ctz cpop rev8"),
    ("alu", "bitfield", "unary", 0, "sbfx ubfx"),
    ("alu", "bitfield", "merge", 0, "bfi bfc"),
    ("alu", "saturate", "unary", 0, "ssat usat"),
    ("alu", "saturate_dual", "unary", 0, "ssat16 usat16"),
    ("alu", "simd", "binary", 0, f"{_PARALLEL} sel usad8 qadd qsub qdadd qdsub"),
    ("alu", "pack", "pack", 0, "pkhbt pkhtb"),
    ("alu", "simd", "mla", 0, "usada8"),
    ("alu", "select", "select", 0, "csel csinc csinv csneg cset csetm cinc cinv cneg"),
    ("alu", "system", "none", 0, "mrs msr dsb dmb isb svc bkpt cpsie cpsid clrex dbg csdb fence"
     " fence.i ecall ebreak c.ebreak mret csrr csrw csrs csrc csrrw csrrs csrrc csrwi csrsi csrci"
     " csrrwi csrrsi csrrci rdcycle rdinstret rdtime rdcycleh rdinstreth rdtimeh unimp c.unimp"
     " wfi wfe sev yield esb ssbb pssbb sg udf"),
    ("alu", "system", "read", 0, "pld pldw pli"),
    ("mul", "mul", "binary", 0, "mul c.mul"),
    ("mul", "mul_dual", "binary", 0, "smuad smuadx smusd smusdx"),
    ("mul", "mul_half", "binary", 0, f"{_pairs('smul', _HALFWORD)} smulwb smulwt"),
    ("mul", "mul_high", "binary", 0, "smmul smmulr mulh mulhu mulhsu"),
    ("mul", "mac_high", "mla", 0, "smmla smmlar smmls smmlsr smlawb smlawt"),
    ("mul", "mul_long", "long", 0, "smull umull"),
    ("mul", "mac_long", "long_accumulate", 0, "smlal umlal umaal"),
    ("mac", "mac", "mla", 1, "mla mls"),
    ("mac", "mac_half", "mla", 1, _pairs("smla", _HALFWORD)),
    ("mac", "mac_half", "long_accumulate", 1, _pairs("smlal", _HALFWORD)),
    ("mac", "mac_dual", "mla", 2, "smlad smladx smlsd smlsdx"),
    ("mac", "mac_dual", "long_accumulate", 2, "smlald smlaldx smlsld smlsldx"),
    ("mul", "div", "binary", 0, "sdiv udiv div divu rem remu"),
    ("branch", "branch", "branch", 0, "b beqz bnez blez bgez bltz bgtz bgt ble bgtu bleu beq bne"
     " blt bge bltu bgeu c.beqz c.bnez cbz cbnz " + " ".join("b" + c for c in CONDITIONS)),
    ("branch", "jump", "branch", 0, "bx bxns j jr c.j c.jr ret tail tbb tbh"),
    ("call", "call", "branch", 0, "bl blx blxns jal jalr call c.jal c.jalr"),
    ("branch", "loop_end", "loop", 0, "le letp"),
    ("branch", "loop_start", "loop_start", 0, "dls wls dlstp wlstp lctp"),
    ("nop", "nop", "none", 0, "nop c.nop"),
)
"""Scalar integer mnemonics."""

_CONVERT = "vcvt vcvta vcvtn vcvtm vcvtp vcvtb vcvtt vrinta vrintn vrintm vrintp vrintx vrintz"
"""Conversions and roundings both of floats and of vectors of them."""

FLOAT = _table(
    ("alu", "f_add", "binary", 0, "vadd vsub vmaxnm vminnm fadd.s fsub.s fmin.s fmax.s"
     " vseleq vselge vselgt vselvs"),
    ("alu", "f_move", "unary", 0, "vabs vneg fmv.s fmv.w.x fmv.x.w fneg.s fabs.s vins vmovx"),
    ("alu", "f_move", "binary", 0, "fsgnj.s fsgnjn.s fsgnjx.s"),
    ("alu", "f_move", "vmov", 0, "vmov"),
    ("alu", "f_move", "unary", 0, "vmrs vmsr"),
    ("alu", "f_convert", "unary", 0, _CONVERT + " vcvtr vrintr fcvt.w.s fcvt.wu.s fcvt.s.w"
     " fcvt.s.wu fclass.s"),
    ("alu", "f_compare", "f_compare", 0, "vcmp vcmpe"),
    ("alu", "f_compare", "binary", 0, "feq.s flt.s fle.s"),
    ("mul", "f_mul", "binary", 0, "vmul vnmul fmul.s"),
    ("mac", "f_mac", "accumulate", 1, "vmla vmls vnmla vnmls"),
    ("mac", "f_fma", "accumulate", 1, "vfma vfms vfnma vfnms"),
    ("mac", "f_fma", "mla", 1, "fmadd.s fmsub.s fnmadd.s fnmsub.s"),
    ("mul", "f_div", "binary", 0, "vdiv fdiv.s"),
    ("mul", "f_sqrt", "unary", 0, "vsqrt fsqrt.s"),
)
"""Scalar floating-point mnemonics."""

_REDUCE = _pairs("vmaxv vminv vmaxav vminav vmaxnmv vminnmv vmaxnmav vminnmav", "")

VECTOR = _table(
    ("mac", "v_mac", "write", -1, _pairs("vmladav vmlav vmlsdav", "|x")),
    ("mac", "v_mac", "accumulate", -1, _pairs("vmladava vmlava vmlsdava", "|x")),
    ("mac", "v_mac_long", "long", -1, _pairs("vmlaldav vmlalv vmlsldav vrmlaldavh vrmlalvh", "|x")),
    ("mac", "v_mac_long", "long_accumulate", -1,
     _pairs("vmlaldava vmlalva vmlsldava vrmlaldavha vrmlalvha", "|x")),
    ("mac", "v_mac", "accumulate", -1, "vmla vmls vfma vfms vcmla"),
    ("mac", "v_mac", "merge", -1, "vmlas vfmas"),
    ("mac", "v_mul", "binary", -1, "vmul"),
    ("mul", "v_mul", "binary", 0, "vmulh vrmulh vqdmulh vqrdmulh vmullb vmullt vqdmullb vqdmullt"
     " vcmul"),
    ("mul", "v_mul", "accumulate", 0, "vqdmlah vqrdmlah vqdmlash vqrdmlash vqdmladh vqdmladhx"
     " vqrdmladh vqrdmladhx vqdmlsdh vqrdmlsdh"),
    ("alu", "v_alu", "binary", 0, "vadd vsub vhadd vhsub vrhadd vqadd vqsub vabd vmax vmin vand"
     " vorr veor vbic vorn vshl vshr vcadd vhcadd vbrsr vpsel vmaxnm vminnm"),
    ("alu", "v_alu", "merge", 0, "vmaxa vmina vsli vsri vmaxnma vminnma"),
    ("alu", "v_alu", "unary", 0, "vabs vneg vmvn vqabs vqneg vclz vcls vrev16 vrev32 vrev64"
     " vmovlb vmovlt"),
    ("alu", "v_dup", "unary", 0, "vdup"),
    ("alu", "v_dup", "index", 0, "vidup vddup viwdup vdwdup"),
    ("alu", "v_alu_long", "binary", 0, "vrshl vqshl vqrshl vqshlu vrshr vadc vadci vsbc vsbci"
     " vshlc vshllb vshllt"),
    ("alu", "v_narrow", "merge", 0, "vmovnb vmovnt vqmovnb vqmovnt vqmovunb vqmovunt vshrnb vshrnt"
     " vrshrnb vrshrnt vqshrnb vqshrnt vqrshrnb vqrshrnt vqshrunb vqshrunt vqrshrunb vqrshrunt"),
    ("alu", "v_sum", "write", 0, "vaddv"),
    ("alu", "v_sum", "accumulate", 0, "vaddva vabav"),
    ("alu", "v_sum", "long", 0, "vaddlv"),
    ("alu", "v_sum", "long_accumulate", 0, "vaddlva"),
    ("alu", "v_reduce", "merge", 0, _REDUCE),
    ("alu", "v_compare", "v_compare", 0, "vcmp vpt"),
    ("alu", "v_convert", "unary", 0, _CONVERT),
    ("alu", "v_move", "vmov", 0, "vmov"),
    ("alu", "v_predicate", "predicate", 0, "vctp vpst vpnot"),
    ("mac", "v_mac", "read", 16, "ee.vmulas.s8.accx ee.vmulas.s8.qacc"),
    ("mac", "v_mac", "read", 8, "ee.vmulas.s16.qacc ee.vsmulas.s16.qacc"),
    ("mul", "v_mul", "binary", 0, "ee.vmul"),
    ("alu", "v_alu", "binary", 0, "ee.vadds ee.vmax ee.vmin ee.vcmp.lt ee.vzip ee.vunzip ee.src.q"
     " ee.vsl ee.vsr"),
    ("alu", "v_move", "read", 0, "ee.zero.q ee.movi.32.a ee.movi.32.q ee.srs.accx"),
)
"""Vector mnemonics: Armv8.1-M's (MVE), and those of the ESP32-S3 (PIE) that kernels are made of."""


def _access(kind: str, timing: str, names: str, width_bytes: int) -> dict[str, Mnemonic]:
    return {name: Mnemonic(kind=kind, timing=timing, form=kind, width_bytes=width_bytes)
            for name in names.split()}


MEMORY = {
    **_access("load", "load", "ldr ldrt lw c.lw c.lwsp ldrex ldaex lda lr.w", 4),
    **_access("load", "load_narrow", "ldrb ldrsb ldrbt ldrsbt lb lbu ldab ldrexb", 1),
    **_access("load", "load_narrow", "ldrh ldrsh ldrht ldrsht lh lhu ldah ldrexh", 2),
    **_access("load", "load_multi", "ldrd ldm ldmia ldmfd ldmdb ldmea pop cm.pop cm.popret", 4),
    **_access("load", "f_load", "vldr flw c.flw c.flwsp", 4),
    **_access("load", "f_load_multi", "vldm vldmia vldmdb vpop", 4),
    **_access("store", "store", "str strt sw c.sw c.swsp strex stlex stl sc.w", 4),
    **_access("store", "store", "strb strbt sb stlb strexb", 1),
    **_access("store", "store", "strh strht sh stlh strexh", 2),
    **_access("store", "store_multi", "strd stm stmia stmea stmdb stmfd push cm.push", 4),
    **_access("store", "f_store", "vstr fsw c.fsw c.fswsp", 4),
    **_access("store", "f_store_multi", "vstm vstmia vstmdb vpush", 4),
}
"""Loads and stores of one or several registers."""

VECTOR_MEMORY = {
    **_access("load", "v_load", "vldrb", 1), **_access("load", "v_load", "vldrh", 2),
    **_access("load", "v_load", "vldrw vldr", 4), **_access("load", "v_load", "vldrd", 8),
    **_access("store", "v_store", "vstrb", 1), **_access("store", "v_store", "vstrh", 2),
    **_access("store", "v_store", "vstrw vstr", 4), **_access("store", "v_store", "vstrd", 8),
    **_access("load", "v_interleave_load", _pairs("vld2", "0|1") + " "
              + _pairs("vld4", "0|1|2|3"), 16),
    **_access("store", "v_interleave_store", _pairs("vst2", "0|1") + " "
              + _pairs("vst4", "0|1|2|3"), 16),
    **_access("load", "v_load", "ee.vld.128", 16), **_access("store", "v_store", "ee.vst.128", 16),
}
"""MVE loads and stores; the width is of one element in memory. The ESP32-S3's, of a vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A mnemonic taken apart."""

    base: str
    spec: Mnemonic
    flags: bool
    conditional: bool
    predicated: bool
    types: tuple[str, ...]
    width: str


_IT = re.compile(r"^it[te]{0,3}$")
_DATA_TYPE = re.compile(r"^[suifp]?(?:8|16|32|64)$")


def read_word(head: str, vector: bool, line: str) -> Word:
    """Take a mnemonic apart: base name, flags, condition, data types, width."""
    parts = head.split(".")
    width = ""
    if len(parts) > 1 and parts[-1] in ("w", "n") and head not in FLOAT and head not in MEMORY:
        width = parts.pop()
    types = []
    while len(parts) > 1 and _DATA_TYPE.match(parts[-1]):
        types.append(parts.pop())
    name = ".".join(parts)
    if _IT.match(name):
        it = Mnemonic(kind="nop", timing="it", form="none")
        return Word(base="it", spec=it, flags=False, conditional=True, predicated=False,
                     types=(), width="n")
    tables = (VECTOR, VECTOR_MEMORY) if vector else (SCALAR, FLOAT, MEMORY)
    tables = (*tables, VECTOR) if not vector else tables
    for base, flags, conditional, predicated in _spellings(name, vector):
        for table in tables:
            if base in table:
                return Word(base=base, spec=table[base], flags=flags, conditional=conditional,
                             predicated=predicated, types=tuple(reversed(types)), width=width)
    known = [known for table in tables for known in table]
    raise KernelError(f"instruction {line!r}: mnemonic {head!r} is not known; "
                      + did_you_mean(name, known))


def _spellings(name: str, vector: bool) -> Iterator[tuple[str, bool, bool, bool]]:
    """Return readings of a name: base, sets flags, conditional, predicated; plainest first."""
    yield name, False, False, False
    if vector or name.startswith("v"):
        if name[-1:] in ("t", "e"):
            yield name[:-1], False, False, True
    elif name.endswith("s"):
        yield name[:-1], True, False, False
    for condition in CONDITIONS:
        if name.endswith(condition):
            stem = name[:-len(condition)]
            yield stem, False, True, False
            if stem.endswith("s"):
                yield stem[:-1], True, True, False


_NARROW_IMMEDIATES = {"add": 255, "sub": 255, "mov": 255, "cmp": 255, "lsl": 31, "lsr": 31,
                      "asr": 31, "rsb": 0}
_WIDE_ONLY = ("sxtb16", "uxtb16", "movw", "movt", "mla", "mls", "sbfx", "ubfx", "bfi", "bfc", "orn",
              "addw", "subw", "clz", "rbit", "ldrd", "strd", "pld", "teq", "le", "letp")


def is_narrow(word: Word, operands: list[Operand]) -> bool:
    """Judge whether a 16-bit encoding exists (Arm DDI 0403, A5.2), as an assembler would pick."""
    if word.width:
        return word.width == "n"
    spec = word.spec
    if spec.kind in ("nop", "branch"):
        return word.base not in ("le", "letp")
    if word.base in _WIDE_ONLY or spec.timing in (
            "simd", "pack", "saturate", "saturate_dual", "extend_add", "select", "mul_long", "div",
            "mac_half", "mac_dual", "mac_long", "mac_high", "mul_high", "mul_half", "mul_dual"):
        return False
    if any(operand.vector or operand.is_float or operand.writeback for operand in operands
           if not operand.is_list) or spec.timing.startswith(("f_", "v_")):
        return False
    names = {name for operand in operands for name in operand.registers}
    if word.base == "mov" and not any(operand.immediate is not None for operand in operands):
        return True
    if not names <= LOW_REGISTERS and spec.kind != "call":
        return False
    if any(operand.shift for operand in operands):
        return False
    return _is_short(word, operands)


def _is_short(word: Word, operands: list[Operand]) -> bool:
    """Judge whether a 16-bit encoding has room for the constant, and for the third register."""
    spec = word.spec
    immediate = next((o.immediate for o in operands if o.immediate is not None), None)
    same = len(operands) < 3 or operands[0].registers == operands[1].registers
    if spec.form in ("load", "store"):
        post = spec.kind in ("load", "store") and operands[-1].immediate is not None \
            and not operands[-1].memory
        return not post and (immediate is None or 0 <= immediate <= 31 * spec.width_bytes)
    if immediate is not None:
        limit = _NARROW_IMMEDIATES.get(word.base, -1)
        if word.base in ("add", "sub") and not same:
            limit = 7
        return 0 <= immediate <= limit
    return word.base in ("add", "sub") or same or spec.form == "unary"
