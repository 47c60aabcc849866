"""The states of a classic group, and from which state each may be reached."""

from enum import Enum


class ClassicGroupState(Enum):
    """The values are those of DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS: dict[ClassicGroupState, tuple[ClassicGroupState, ...]] = {
    ClassicGroupState.EMPTY: (ClassicGroupState.PREPARING_REBALANCE,),
    ClassicGroupState.PREPARING_REBALANCE: (
        ClassicGroupState.EMPTY,
        ClassicGroupState.COMPLETING_REBALANCE,
        ClassicGroupState.STABLE,
    ),
    ClassicGroupState.COMPLETING_REBALANCE: (ClassicGroupState.PREPARING_REBALANCE,),
    ClassicGroupState.STABLE: (ClassicGroupState.COMPLETING_REBALANCE,),
    ClassicGroupState.DEAD: tuple(ClassicGroupState),
}
