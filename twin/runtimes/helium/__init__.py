"""Element-wise operators as vendors' closed libraries may run them with Helium; all assumed."""
