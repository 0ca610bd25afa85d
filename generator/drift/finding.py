"""One difference between what the spec says and what a header has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..spec.abi import NOWHERE, Location


class Severity(Enum):
    """What a finding breaks, from the worst to the least."""

    BREAKING = "breaking"
    """Compiled code that follows the spec misbehaves with the header's release."""
    UNREADABLE = "unreadable"
    """A part of the header could not be read, so nothing is known of it."""
    SOURCE = "source"
    """Source code needs a change to compile, compiled code works."""
    CONTRACT = "contract"
    """Layout and names are the same, but what callers may rely on changed."""
    ADDITIVE = "additive"
    """The header has something new that the spec does not know."""
    DOCUMENTATION = "documentation"
    """The header's own comments contradict its declarations."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; ``rule`` is a stable id such as ``slot-moved``."""

    rule: str
    severity: Severity
    symbol: str
    """The element by dotted name, such as ``OrtInteropApi.ImportMemory``."""
    message: str
    """What is different and what breaks for whom."""
    expected: str = ""
    """How the spec has it."""
    actual: str = ""
    """How the header has it."""
    spec_loc: Location = NOWHERE
    header_loc: Location = NOWHERE
    hint: str = ""
    """What to do about it."""


def severity_order(finding: Finding) -> tuple[int, str, int, str]:
    """Worst first, then by place in the header."""
    ranks = list(Severity)
    return (
        ranks.index(finding.severity),
        finding.header_loc.file,
        finding.header_loc.line,
        finding.symbol,
    )
