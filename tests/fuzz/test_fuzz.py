"""Some hundreds of random edits of a whole header and of the spec; ``make fuzz`` makes 10,000 of each."""

from __future__ import annotations

import pytest

from fuzz.engine import LIMIT_SECONDS, header_edits, spec_edits


@pytest.mark.parametrize("seed", range(4))
def test_check_answers_every_edit_of_a_header(seed: int) -> None:
    tally = header_edits(50, seed)
    assert not tally.faults, tally.faults[:5]
    assert tally.answers["exit 1"] > tally.answers["exit 2"] > 0, tally
    assert tally.percentile(0.99) < LIMIT_SECONDS, tally


def test_the_spec_is_read_or_rejected_with_places() -> None:
    tally = spec_edits(120, 7)
    assert not tally.faults, tally.faults[:5]
    assert tally.answers["rejected"] > tally.answers["accepted"] > 0, tally
