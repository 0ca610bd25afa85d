"""Render the model into files: targets, formatting, and writing all or nothing."""

from .target import Output, Target

__all__ = ["Output", "Target"]
