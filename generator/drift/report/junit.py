"""The report as JUnit XML: a test case for each rule that holds and for each finding."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ...spec.abi import Location
from ..finding import Finding
from ..rules import RULES
from .model import FAIL_ON, ORDER, Report

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, color: bool = False) -> str:
    """One suite a severity.  A finding that does not fail the run is a skipped case with its text."""
    root = ElementTree.Element("testsuites", name=f"ort-interop-gen {report.command}")
    broken = {f.rule for f in report.findings}
    for severity in ORDER:
        suite = ElementTree.SubElement(root, "testsuite", name=severity.value)
        found = [f for f in report.findings if f.severity is severity]
        for finding in found:
            _case(report, suite, finding)
        for rule in RULES.values():
            if rule.severity is severity and rule.id not in broken:
                ElementTree.SubElement(suite, "testcase", classname=rule.id, name=rule.title)
        failing = len(found) if severity in FAIL_ON[report.fail_on] else 0
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(failing))
        suite.set("errors", "0")
        suite.set("skipped", str(len(found) - failing))
    root.set("tests", str(sum(int(s.get("tests", "0")) for s in root)))
    root.set("failures", str(len(report.failing)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _case(report: Report, suite: ElementTree.Element, finding: Finding) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=finding.rule, name=_clean(finding.symbol)
    )
    loc = finding.header_loc if report.place(finding.header_loc) else finding.spec_loc
    path = report.place(loc)
    lines = [finding.message]
    if finding.expected or finding.actual:
        lines += [f"expected: {finding.expected}", f"actual: {finding.actual}"]
    if path is not None:
        case.set("file", _clean(path))
        if loc.line:
            case.set("line", str(loc.line))
        lines.append(f"at {Location(path, loc.line, loc.column)}")
    if finding.hint:
        lines.append(f"hint: {finding.hint}")
    fails = finding.severity in FAIL_ON[report.fail_on]
    result = ElementTree.SubElement(case, "failure" if fails else "skipped")
    result.set("message", _clean(finding.message))
    if fails:
        result.set("type", finding.rule)
    result.text = _clean("\n".join(lines))


def _clean(text: str) -> str:
    """Text without the control characters that XML 1.0 cannot carry."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
