"""What holds for a block, and for whatever it decorates."""

from __future__ import annotations

import unittest
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Decorating(ABC):
    """
    Decorates functions, coroutine functions and ``unittest.TestCase`` classes.

    Each run of a function and each test of a class gets a context of its own, so
    that runs may overlap in threads and tasks.
    """

    @abstractmethod
    def anew(self) -> AbstractContextManager[Any]:
        """Return a context that nobody has entered."""

    def __call__(self, decorated: Decorated) -> Decorated:
        if not isinstance(decorated, type):
            return cast("Decorated", self.decorate_function(decorated))
        if not issubclass(decorated, unittest.TestCase):
            raise TypeError(
                "Of classes, subclasses of unittest.TestCase can be decorated: decorate the test "
                f"methods of {decorated.__name__} instead."
            )
        self.decorate_case(decorated)
        return decorated

    def decorate_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function, or a coroutine function, that runs in a context."""
        if iscoroutinefunction(function):

            @wraps(function)
            async def arun(*args: Any, **kwargs: Any) -> Any:
                with self.anew():
                    return await function(*args, **kwargs)

            return arun

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.anew():
                return function(*args, **kwargs)

        return run

    def decorate_case(self, case_class: type[unittest.TestCase]) -> None:
        """Let each test of a class, from its ``setUp()`` on, have a context."""
        set_up = case_class.setUp

        @wraps(set_up)
        def opening(case: unittest.TestCase) -> None:
            case.enterContext(self.anew())
            set_up(case)

        setattr(case_class, set_up.__name__, opening)
