"""The admin client: `Admin` blocks, `aio.Admin` is awaited; both are thin over one core (`core.AdminCore`)."""

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.errors import AdminError

__all__ = ["Admin", "AdminError"]
