"""The drift stage: what is different between the spec and a header, and whom it breaks."""

from .compare import compare
from .finding import Finding, Severity

__all__ = ["Finding", "Severity", "compare"]
