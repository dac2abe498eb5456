"""A prediction beside a measurement: are they of one thing, and how far are they apart."""
