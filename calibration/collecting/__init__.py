"""From a board to a measurement: wire, link, plan, collector."""
