"""The header stage: real headers in, the same model as the spec's out (:mod:`.reader`)."""
