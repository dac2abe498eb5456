"""Neural-ART: a layer as work for the accelerator's units and stream engines."""
