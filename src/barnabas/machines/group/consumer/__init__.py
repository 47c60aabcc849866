"""Groups of the consumer protocol (KIP-848): the broker assigns, and each member goes to its target at its own pace."""
