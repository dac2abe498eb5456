"""Models of hardware: instructions, boards, caches, buses and accelerators, and their prices."""
