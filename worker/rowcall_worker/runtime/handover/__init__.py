"""Hand runs over to a broker: publish their messages, and let go of them."""
