"""The bill: what an inference costs per layer, and why."""
