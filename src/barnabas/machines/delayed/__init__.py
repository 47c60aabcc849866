"""Delayed messages: what is pending, in which order it is due, and how far delivery has come. Pure."""
