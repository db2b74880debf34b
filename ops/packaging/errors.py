"""Errors of the build.

BuildError
└── RefusedContent   something is in a package that must not be there
"""

from __future__ import annotations


class BuildError(Exception):
    """The packages were not staged; the message says what to do about it."""


class RefusedContent(BuildError):
    """A package would carry what it must not: the runtime's own SDK, or more than its limit."""
