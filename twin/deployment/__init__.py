"""Where a network is put: memories, placement, transfers, addresses, and every what-if path."""
