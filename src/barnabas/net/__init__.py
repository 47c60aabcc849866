"""Sockets on an event loop: listeners, connections that carry frames, replies in request order.

The broker starts a `server.Server` with a handler; nothing here knows what a frame means.
"""
