"""Kernels whose instructions were counted: a table of measured coefficients per operator.

What a generic loop executes is linear in a few numbers of its shapes: calls, rows, elements. Each
operator states these numbers as terms (`terms/`); how many instructions of each class a term costs
was counted on the library's own compiled code, by core, compiler level and kernels
(`counts/*.csv`, made by `python -m benchmarks.operators --fit`). Accesses to operands stay those of
the loop nest, so caches see addresses as ever.
"""
