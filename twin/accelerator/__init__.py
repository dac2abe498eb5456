"""Networks on an accelerator: epochs, what stays on the host, and the profiler's report."""
