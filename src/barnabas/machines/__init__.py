"""Pure state machines of the broker: no I/O, no clock, no chance, no asyncio; time comes in as `now_ms`."""
