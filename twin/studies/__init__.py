"""Many deployments of one network, side by side."""
