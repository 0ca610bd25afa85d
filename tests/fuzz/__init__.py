"""Random edits of a whole header and of the spec files: an answer each time, and soon."""
