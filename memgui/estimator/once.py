"""An attribute that is made when it is first asked for.

``functools.cached_property`` takes a lock each time in Python 3.11; a cold estimate makes a hundred.
Programs are shared by threads: what two of them make at the same time is alike, and either will do.  Where
making it changes something that is there (:class:`by_one`, ``TURN``) they take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Final, Generic, TypeVar, overload

T = TypeVar("T")

TURN: Final = RLock()
"""Whose turn it is to change what threads share."""


class once(Generic[T]):
    """What the method returns the first time; the instance keeps it under the method's name."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._make(instance)
        return made


class by_one(once[T]):
    """The same, made by one thread alone."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        def alone(instance: Any) -> T:
            held, name = instance.__dict__, self._name
            with TURN:
                if name not in held:
                    held[name] = make(instance)
            made: T = held[name]
            return made

        super().__init__(alone)
        self.__doc__ = make.__doc__
