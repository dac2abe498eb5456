"""To hardware nobody measured: micro-benchmarks, what they would tell, and predictions before."""
