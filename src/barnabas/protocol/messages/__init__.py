"""One file per API, named after the API in snake case, with request and response. Only declarations."""
