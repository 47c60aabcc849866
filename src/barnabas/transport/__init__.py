"""Bytes between two ends: frames in, parts out. Brokers and clients use the same.

`stream.Stream` is one connection on an event loop; `frames` cuts input into frames without doing I/O; `output` sends.
`channel` says what a network is, `system` is the operating system's. Nothing here knows what a frame means.
"""
