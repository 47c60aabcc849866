"""SASL mechanisms as pure state machines: bytes in, bytes out; no sockets, no clock, no randomness of their own."""
