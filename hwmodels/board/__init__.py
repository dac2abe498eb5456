"""Boards: facts of a machine, the files they are read from, and the rules they keep."""
