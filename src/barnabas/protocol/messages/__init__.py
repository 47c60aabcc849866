"""One file an API, named as the API in snake case; request and response side by side. Nothing here but declarations."""
