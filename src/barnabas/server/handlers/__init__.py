"""One file per API, each ending in its row `HANDLER`; `refused` holds the rows of all APIs that are only refused.

A file in this folder is a handler: there is no other list of them.
"""

from importlib import import_module
from pkgutil import iter_modules

from barnabas.server.dispatch import AnyHandler
from barnabas.server.handlers import refused

HANDLERS: tuple[AnyHandler, ...] = refused.HANDLERS + tuple(
    import_module(f"{__name__}.{module.name}").HANDLER for module in iter_modules(__path__) if module.name != "refused"
)
