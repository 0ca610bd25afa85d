"""Generate bindings, EP skeletons and drift checks for ONNX Runtime's interop API from one spec."""

from __future__ import annotations

__version__ = "0.1.0"
