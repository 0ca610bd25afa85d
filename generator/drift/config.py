"""What a project says about findings: severities by rule, and a baseline of accepted ones.

In ``pyproject.toml`` (or at the top level of a file given with ``--config``)::

    [tool.ort-interop-gen]
    fail-on = "contract"
    baseline = "drift-baseline.json"

    [tool.ort-interop-gen.rules.param-renamed]
    severity = "additive"
    reason = "our callers pass by position"
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..spec.abi import Location
from ..spec.problems import Problem, SpecErrors
from .finding import Finding, Severity
from .report.model import FAIL_ON, Accepted, Override, fingerprint, ordered
from .rules import RULES

FILES = ("ort-interop-gen.toml", "pyproject.toml")
"""Where configuration is looked for, from the current folder up to the repository's root."""
TABLE = "ort-interop-gen"
OFF = "off"
BASELINE_SCHEMA = 1
_KEYS = ("fail-on", "baseline", "rules")
_RULE_KEYS = ("severity", "reason")


class ConfigErrors(SpecErrors):
    """A configuration or baseline file is at fault; ``problems`` tells all."""


@dataclass(frozen=True, slots=True)
class Config:
    """What was configured; everything is optional."""

    file: Path | None = None
    fail_on: str | None = None
    baseline: Path | None = None
    """Relative paths are relative to the configuration file."""
    overrides: Mapping[str, Override] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding that a baseline accepts; it is found again by its fingerprint alone."""

    fingerprint: str
    rule: str
    symbol: str
    reason: str
    expected: str = ""
    actual: str = ""

    @property
    def documentation(self) -> bool:
        """Whether ``lint-docs`` finds it, and not a comparison."""
        rule = RULES.get(self.rule)
        return rule is not None and rule.severity is Severity.DOCUMENTATION


@dataclass(frozen=True, slots=True)
class Settled:
    """Findings after configuration and baseline."""

    findings: tuple[Finding, ...]
    accepted: tuple[Accepted, ...]
    overrides: tuple[Override, ...]
    stale: tuple[str, ...]


def find_config(start: Path) -> Path | None:
    """The nearest file with our table, not looking beyond the repository that ``start`` is in."""
    for folder in (start, *start.parents):
        for name in FILES:
            path = folder / name
            if path.is_file() and (name != "pyproject.toml" or _has_table(path)):
                return path
        if (folder / ".git").exists():
            return None
    return None


def load_config(path: Path) -> Config:
    """Read one configuration file; raise :class:`ConfigErrors` with everything wrong in it."""
    # A check without configuration, which is most of them, must not pay for a parser.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    text = _read(path)
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        loc = Location(str(path), int(line[1]) if line else len(text.splitlines()))
        raise ConfigErrors([Problem(loc, f"not valid TOML: {error}")]) from None
    if path.name == "pyproject.toml" or "tool" in data:
        tool = data.get("tool")
        if not isinstance(tool, dict) or TABLE not in tool:
            problem = Problem(
                Location(str(path)),
                f"there is no table [tool.{TABLE}] in this file",
                f"write it, or keep the settings at the top level of an {FILES[0]}",
            )
            raise ConfigErrors([problem])
        data = tool[TABLE]
    return _Parser(path, text).config(data)


def load_baseline(path: Path) -> list[Entry]:
    """Read the findings that are accepted; raise :class:`ConfigErrors` on a damaged file."""
    import json

    again = "write it again with --write-baseline"
    try:
        data = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise ConfigErrors(
            [Problem(Location(str(path), line), f"not JSON: {error}", again)]
        ) from None
    if not isinstance(data, dict) or data.get("schema") != BASELINE_SCHEMA:
        raise ConfigErrors(
            [Problem(Location(str(path)), f"not a baseline of schema {BASELINE_SCHEMA}", again)]
        )
    entries = data.get("accepted")
    keys = ("fingerprint", "rule", "symbol", "reason")
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and all(isinstance(e.get(k), str) for k in keys) for e in entries
    ):
        raise ConfigErrors(
            [
                Problem(
                    Location(str(path)),
                    f"'accepted' must be a list of entries with {', '.join(keys)}",
                    again,
                )
            ]
        )
    sides = ("expected", "actual")
    return [Entry(*(e[k] for k in keys), *(str(e.get(k, "")) for k in sides)) for e in entries]


def baseline_text(
    findings: Iterable[Finding],
    reason: str,
    kept: Iterable[Entry] = (),
    others: Iterable[Entry] = (),
) -> str:
    """A baseline that accepts some findings for a reason; those that were ``kept`` before keep theirs.

    ``others`` are entries that these findings say nothing about: they stay.
    """
    import json

    known = {entry.fingerprint: entry for entry in kept}
    order = ("fingerprint", "rule", "symbol", "expected", "actual", "reason")
    entries = [{key: getattr(entry, key) for key in order} for entry in others]
    for finding in ordered(findings):
        mark = fingerprint(finding)
        entry = {
            "fingerprint": mark,
            "rule": finding.rule,
            "symbol": finding.symbol,
            "expected": finding.expected,
            "actual": finding.actual,
            "reason": known[mark].reason if mark in known else reason,
        }
        if entry not in entries:
            entries.append(entry)
    data = {"schema": BASELINE_SCHEMA, "accepted": entries}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def settle(
    findings: Iterable[Finding], config: Config, baseline: Sequence[Entry] = (), source: str = ""
) -> Settled:
    """Apply severities and the baseline.  A rule that is off still shows up among the accepted."""
    by_mark = {entry.fingerprint: entry for entry in baseline}
    kept: list[Finding] = []
    accepted: list[Accepted] = []
    used: dict[str, Override] = {}
    met: set[str] = set()
    for finding in findings:
        entry = by_mark.get(fingerprint(finding))
        if entry is not None:
            met.add(entry.fingerprint)
            accepted.append(Accepted(finding, entry.reason, source or "baseline"))
            continue
        override = config.overrides.get(finding.rule)
        if override is None:
            kept.append(finding)
            continue
        if override.severity is None:
            accepted.append(Accepted(finding, override.reason, str(override.loc)))
            continue
        if override.severity is not finding.severity:
            used[finding.rule] = replace(override, default=finding.severity)
        kept.append(replace(finding, severity=override.severity))
    stale = tuple(f"{e.symbol} ({e.rule})" for e in baseline if e.fingerprint not in met)
    return Settled(ordered(kept), tuple(accepted), tuple(used.values()), stale)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigErrors(
            [Problem(Location(str(path)), "the file is not UTF-8", "save it as UTF-8")]
        ) from None
    except OSError as error:
        raise ConfigErrors(
            [Problem(Location(str(path)), f"cannot be read: {error.strerror}")]
        ) from None


def _has_table(path: Path) -> bool:
    """Whether a ``pyproject.toml`` has our table; one that may have it, but is damaged, counts.

    Most have not, and a check must not wait for a parser to learn it.
    """
    try:
        raw = path.read_bytes()
    except OSError:
        return False
    if TABLE.encode() not in raw:
        return False
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tool = tomllib.loads(raw.decode("utf-8-sig")).get("tool")
    except (ValueError, RecursionError):
        return re.search(rf"\btool\b.*{TABLE}".encode(), raw) is not None
    return isinstance(tool, dict) and TABLE in tool


class _Parser:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.problems: list[Problem] = []

    def where(self, *keys: str) -> Location:
        """The line of a key; TOML readers give none, so it is looked for: header, then key."""
        at = 0
        for key in keys:
            wanted = re.compile(
                rf"^\s*\[[^\]]*\b{re.escape(key)}\"?\s*\]|(^|[{{,.\s]){re.escape(key)}\"?\s*[=.]"
            )
            lines = enumerate(self.lines[at:], at)
            found = next((i for i, text in lines if key in text and wanted.search(text)), None)
            if found is None:
                break
            at = found
        return Location(str(self.path), at + 1)

    def fault(self, loc: Location, message: str, hint: str = "") -> None:
        self.problems.append(Problem(loc, message, hint))

    def known(self, loc: Location, what: str, key: str, known: Sequence[str]) -> bool:
        if key in known:
            return True
        from difflib import get_close_matches

        close = get_close_matches(key, known, 1)
        few = f"there are {', '.join(known)}" if len(known) < 12 else "see docs/rules.md for all"
        self.fault(loc, f"unknown {what} '{key}'", f"did you mean '{close[0]}'?" if close else few)
        return False

    def config(self, data: Any) -> Config:
        fail_on: str | None = None
        baseline: Path | None = None
        overrides: dict[str, Override] = {}
        if not isinstance(data, dict):
            self.fault(self.where(TABLE), f"'{TABLE}' must be a table")
            data = {}
        for key, value in data.items():
            if not self.known(self.where(key), "key", key, _KEYS):
                continue
            loc = self.where(key)
            if key == "fail-on":
                if isinstance(value, str) and value in FAIL_ON:
                    fail_on = value
                else:
                    self.fault(loc, f"fail-on cannot be {value!r}", f"one of {', '.join(FAIL_ON)}")
            elif key == "baseline":
                if isinstance(value, str) and value:
                    baseline = self.path.parent / value
                else:
                    self.fault(loc, "baseline must be the path of a file")
            elif not isinstance(value, dict):
                self.fault(loc, "rules must be a table of rules")
            else:
                for rule, entry in value.items():
                    override = self.override(rule, entry)
                    if override is not None:
                        overrides[rule] = override
        if self.problems:
            raise ConfigErrors(self.problems)
        return Config(self.path, fail_on, baseline, overrides)

    def override(self, rule: str, entry: Any) -> Override | None:
        loc = self.where(rule)
        if not self.known(loc, "rule", rule, tuple(RULES)):
            return None
        if not isinstance(entry, dict):
            self.fault(loc, f"'{rule}' must have a severity and a reason", _example(rule))
            return None
        for key in entry:
            self.known(self.where(rule, key), "key", key, _RULE_KEYS)
        names = [*(s.value for s in Severity), OFF]
        severity, reason = entry.get("severity"), entry.get("reason")
        if severity not in names:
            self.fault(
                self.where(rule, "severity"),
                (
                    f"severity of '{rule}' cannot be {severity!r}"
                    if severity
                    else f"'{rule}' has no severity"
                ),
                f"one of {', '.join(names)}",
            )
            return None
        if not isinstance(reason, str) or not reason.strip():
            self.fault(loc, f"'{rule}' has no reason", _example(rule))
            return None
        chosen = None if severity == OFF else Severity(severity)
        return Override(rule, chosen, reason.strip(), loc, RULES[rule].severity)


def _example(rule: str) -> str:
    return f'write: {rule} = {{ severity = "additive", reason = "why this is right here" }}'
