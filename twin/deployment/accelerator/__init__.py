"""How an accelerator's compiler groups layers, places buffers and lays out tasks."""
