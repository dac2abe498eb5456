"""A kernel library learnt from programs: what their layers did, as coefficients of shapes."""
