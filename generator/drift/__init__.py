"""The drift stage: what is different between the spec and a header, and whom it breaks."""
