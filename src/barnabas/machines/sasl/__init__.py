"""SASL mechanisms as pure state machines: bytes in, bytes out; no sockets, no clock, no chance of their own."""
