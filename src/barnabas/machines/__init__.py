"""Pure state machines of the broker: no I/O, no clock, no randomness, no asyncio. Time is passed in as `now_ms`."""
