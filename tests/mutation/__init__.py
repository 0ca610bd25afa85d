"""Mutation test of the drift checker: small edits of a header's text, each with the finding it must cause."""
