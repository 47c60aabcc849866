"""`barnabas mirror`: topics of one cluster copied to another, exactly once, with the offsets of groups translated."""
