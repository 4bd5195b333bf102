"""Attributes that are computed when they are first asked for, without the lock of Python 3.11's own.

That lock belongs to the class: two threads that each compute an attribute which needs another one wait for
each other for ever. Here both may compute the same value, and one of them is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """Like `functools.cached_property`, for attributes that several threads may ask for."""

        def __init__(self, function):
            self.func, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self.attrname = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
