"""Portable reference kernels in plain C, int8 and float: how each operator becomes instructions.

Structure: TFLite Micro's reference kernels, one loop nest per operator and no use of packed or
vector instructions. Shapes are taken as local variables, as in a plain C function; TFLite Micro
re-reads them from memory where the compiler cannot prove them constant, which costs its
convolutions with few input channels up to 40 % more instructions.
"""
