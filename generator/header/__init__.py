"""The header stage: real headers in, the same model as the spec's out."""

from .errors import HeaderError, Unreadable
from .reader import HeaderResult, read_header

__all__ = ["HeaderError", "HeaderResult", "Unreadable", "read_header"]
