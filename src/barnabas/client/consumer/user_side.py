"""The user's side of a consumer: see `barnabas.client.user_side`, which all clients share."""

from barnabas.client.user_side import AsyncSide, BlockingSide, Guard, UserSide

__all__ = ["AsyncSide", "BlockingSide", "Guard", "UserSide"]
