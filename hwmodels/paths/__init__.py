"""Ways of data and code: from the core through lookup and refill to a memory."""
