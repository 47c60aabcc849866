"""How a client shows who it is: credentials from the options, and the exchange on a new connection."""
