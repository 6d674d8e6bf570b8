"""When a search ends, in PyVRP's words: a time, or a number of iterations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MaxRuntime:
    """Ends after so many seconds.

    >>> MaxRuntime(0)
    Traceback (most recent call last):
        ...
    ValueError: a runtime of 0: seconds above 0 are needed
    """

    max_runtime: float

    def __post_init__(self) -> None:
        if not self.max_runtime > 0:
            raise ValueError(f"a runtime of {self.max_runtime}: seconds above 0 are needed")


@dataclass(frozen=True)
class MaxIterations:
    """Ends after so many iterations: the same seed then gives the same routes, on any machine."""

    max_iterations: int

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise ValueError(f"{self.max_iterations} iterations: at least 1 is needed")


__all__ = ["MaxIterations", "MaxRuntime"]
