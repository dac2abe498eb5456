"""Every kind of picture, drawn from real predictions and published rows, as a page."""
