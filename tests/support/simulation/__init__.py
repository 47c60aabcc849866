"""Whole brokers and clients in one process, in virtual time, from one seed.

`loop` is an event loop whose clock jumps to the next timer; `node` is a process of the simulation, which can be killed
or frozen between any two callbacks; `network` carries bytes between nodes with delays, cuts and resets; `world` puts
them together. Nothing here sleeps, opens a socket or starts a thread, and the same seed gives the same trace.
"""
