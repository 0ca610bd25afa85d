"""Render the model into files: targets, formatting, and writing all or nothing."""
