"""How often the parts of each operator's kernel run, from its shapes; one file a family."""
