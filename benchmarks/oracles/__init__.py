"""Models written apart from the product, as plainly as can be; tests demand equal results."""
