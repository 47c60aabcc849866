"""The web console: a process of its own that watches a cluster through the client package, never through a broker.

`collector` keeps a `ClusterView` current, `recent` remembers it, `api` serves it, `security` guards the door, and `app`
connects them. `static` holds the page: ES modules of our own and one vendored file.
"""
