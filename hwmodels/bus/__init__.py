"""Buses: masters and slaves, bursts, arbitration, DMA, and waiting for each other."""
