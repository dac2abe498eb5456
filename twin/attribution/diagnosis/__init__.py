"""Which fault of a set-up explains a measurement: causes that could, weighed by probability."""
