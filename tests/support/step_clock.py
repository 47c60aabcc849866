"""A clock by which slices of work have a length in steps."""

from barnabas.clock import ManualClock


class StepClock(ManualClock):
    """Every look at it takes a millisecond."""

    def monotonic_ms(self) -> int:
        self.advance(1)
        return super().monotonic_ms()
