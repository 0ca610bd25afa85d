"""Every rule by its stable id: what it finds, how bad that is by default, and what to do about it.

The reports take titles and descriptions from here, and ``docs/rules.md`` is printed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .finding import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding.  An id is never given to another meaning once it was released."""

    id: str
    severity: Severity
    title: str
    description: str
    """What changed, and who is hurt by it."""
    hint: str
    """What to do about a finding of this kind."""


_READ_AGAIN = "regenerate the bindings from a spec that follows this header, and rebuild against it"
_REVIEW = "review the callers; then follow the header in the spec"
_RECORD = "add it to the spec with the release it came in; `update` writes the entry"
_RENAMED = "An element has another name with the same place, type or value. Compiled code works, source must follow."
_RENAME = "follow it in the spec with `renamed:` where the old name is still in use"
_REPORT = "correct the comment where the header is kept"

_BREAKING: tuple[tuple[str, str, str, str], ...] = (
    (
        "slot-moved",
        "Slot moved",
        "A function table has the slot at another index. Callers that were compiled for the old index "
        "call another function with the arguments of this one.",
        _READ_AGAIN,
    ),
    (
        "slot-swapped",
        "Slots swapped",
        "Two slots have changed places. Where their types are equal no compiler notices: calls go to the wrong one.",
        "put the slots back in their order; a table's order is its ABI",
    ),
    (
        "slot-removed",
        "Slot removed",
        "A slot is gone from its table. Its callers read whatever follows, and every later slot has moved.",
        "stop using it from this release on; tables only ever grow, so report it where the header is kept",
    ),
    (
        "slot-inserted",
        "Slot inserted before the end",
        "A new slot stands before slots that already existed, so each of those has moved. "
        "Tables may grow at their end only.",
        _READ_AGAIN,
    ),
    (
        "slot-duplicate",
        "Slot declared twice",
        "A table declares a slot of one name twice. No C compiler accepts it, and later slots have moved.",
        "remove one of the two",
    ),
    (
        "slot-replaced",
        "Slot replaced",
        "Another slot with another signature stands where this one was, so calls of it reach the other.",
        "stop using it from this release on; report it where the header is kept",
    ),
    (
        "slot-relocated",
        "Slot moved to another table",
        "A function is a slot of another table now. Callers that look for it in the old one call something else.",
        "get the other table first, where the host has it; follow the header in the spec",
    ),
    (
        "result-type",
        "Result type changed",
        "A function returns another type, width, constness or pointer depth. Callers read a register that "
        "was not written, or take what is in it for something else.",
        _READ_AGAIN,
    ),
    (
        "param-count",
        "Number of parameters changed",
        "A function takes more or fewer parameters, so callers leave some undefined or shift the others.",
        _READ_AGAIN,
    ),
    (
        "param-order",
        "Parameters reordered",
        "A function takes the same parameters in another order, so callers pass each as the other.",
        _READ_AGAIN,
    ),
    (
        "param-type",
        "Parameter type changed",
        "A parameter has another type, width, constness or pointer depth: what callers pass is read as something else.",
        _READ_AGAIN,
    ),
    (
        "variadic-changed",
        "Variable arguments changed",
        "A function gained or lost its `...`, which changes how arguments are passed.",
        _READ_AGAIN,
    ),
    (
        "calling-convention",
        "Calling convention changed",
        "A function gained or lost ORT_API_CALL. On 32-bit Windows caller and callee then disagree about the stack.",
        "rebuild everything that calls or implements it",
    ),
    (
        "field-moved",
        "Field moved",
        "A struct has the field at another place, so readers of the old layout take another field for it.",
        _READ_AGAIN,
    ),
    (
        "field-swapped",
        "Fields swapped",
        "Two fields have changed places. Where their types are equal no compiler notices.",
        _READ_AGAIN,
    ),
    (
        "field-removed",
        "Field removed",
        "A field is gone from its struct; who fills it writes over what follows.",
        _READ_AGAIN,
    ),
    (
        "field-inserted",
        "Field inserted before the end",
        "A new field stands before fields that already existed, so each of those has moved.",
        _READ_AGAIN,
    ),
    (
        "field-appended-unversioned",
        "Field added to a struct without a version",
        "A struct grew that carries no version, so neither side can tell whether the other one has the field.",
        _READ_AGAIN,
    ),
    (
        "field-duplicate",
        "Field declared twice",
        "A struct declares a field of one name twice. No C compiler accepts it.",
        "remove one of the two",
    ),
    (
        "field-replaced",
        "Field replaced",
        "Another field of another type stands where this one was.",
        _READ_AGAIN,
    ),
    (
        "field-type",
        "Field type changed",
        "A field has another type, so the two sides read its bytes differently.",
        _READ_AGAIN,
    ),
    (
        "field-offset",
        "Offset changed",
        "A field stands at another offset on Linux or on 64-bit Windows though its struct's declarations are the same.",
        "look for a type before it that changed its size",
    ),
    (
        "size-changed",
        "Size changed",
        "A struct has another size on Linux or on 64-bit Windows: arrays of it and structs that hold it shift.",
        _READ_AGAIN,
    ),
    (
        "enum-value",
        "Enumerator value changed",
        "A constant has another value: compiled callers pass, and understand, the old one.",
        "values are part of the ABI: take the header's if it is the released one, else correct the header",
    ),
    (
        "enumerator-removed",
        "Enumerator removed",
        "A constant is gone; compiled code still uses its value, which may mean something else now.",
        _REVIEW,
    ),
    (
        "enumerator-conflict",
        "Enumerator with the value of another",
        "A new constant has a value that meant something else, and what meant it is gone or has another value: "
        "the two sides understand that value differently.",
        "values are part of the ABI: take the header's if it is the released one, else correct the header",
    ),
    (
        "enum-width",
        "Enum width or signedness changed",
        "The values of an enum need another integer type, so compilers store it differently.",
        "keep the enum's values inside int",
    ),
    (
        "typedef-changed",
        "Typedef target changed",
        "A typedef names another type, everywhere that it is used.",
        _READ_AGAIN,
    ),
    (
        "opaque-completed",
        "Opaque type made complete",
        "A type that was only used through pointers now has a layout that others may come to depend on.",
        "record its fields in the spec, or keep it opaque",
    ),
    (
        "struct-made-opaque",
        "Struct made opaque",
        "A struct's fields are no longer declared, so who fills or reads them cannot be built.",
        _REVIEW,
    ),
    (
        "kind-changed",
        "A name stands for another kind of type",
        "What was a struct, union, enum, typedef or opaque type is now declared as another of these.",
        _READ_AGAIN,
    ),
    ("type-removed", "Type removed", "A struct, enum, typedef or opaque type is gone.", _REVIEW),
    (
        "function-removed",
        "Exported function removed",
        "The header declares an exported function no more: programs that import it may fail to load.",
        "import it only from releases that have it",
    ),
    (
        "macro-value",
        "Macro value changed",
        "A macro has another value, which is compiled into its users.",
        _READ_AGAIN,
    ),
    (
        "macro-removed",
        "Macro removed",
        "A macro that belongs to the API is gone.",
        _REVIEW,
    ),
    (
        "platform-macro",
        "Platform macro changed",
        "ORT_API_CALL or ORTCHAR_T expands to something else on one platform: the calling convention "
        "or the path type is another one everywhere.",
        "look at what the header was changed for; no release has it so",
    ),
    (
        "since-changed",
        "Release of introduction changed",
        "The header's \\since names another release than the spec: version gates built from the spec open "
        "too early, or too late.",
        "find out which is right; where the comment is wrong, give `documented_since` in the spec",
    ),
    (
        "version-went-back",
        "ORT_API_VERSION goes back",
        "The header has a lower API version than it is compared with.",
        "check which headers were compared",
    ),
)

_SOURCE: tuple[tuple[str, str, str, str], ...] = (
    ("slot-renamed", "Slot renamed", _RENAMED, _RENAME),
    ("field-renamed", "Field renamed", _RENAMED, _RENAME),
    ("enumerator-renamed", "Enumerator renamed", _RENAMED, _RENAME),
    ("type-renamed", "Type renamed", _RENAMED, _RENAME),
    (
        "enumerator-alias",
        "Enumerator alias",
        "A new constant has the value of one that is still there. A switch with cases for both does not compile.",
        "declare it in the spec with `alias_of:`",
    ),
    (
        "param-renamed",
        "Parameter renamed",
        "A parameter has another name. Bindings with keyword arguments take their names from it.",
        "follow it in the spec, if callers by keyword can",
    ),
    (
        "alias-missing",
        "Alias macro missing",
        "The macro that kept an enumerator's old name alive is gone.",
        "use the new name",
    ),
    (
        "header-moved",
        "Declared in a new header",
        "An element went to a public header that was not there before. Who includes the old one through the main header sees no "
        "difference; who copies single headers needs one more file.",
        "copy the new header too; in the spec, say `moved:`",
    ),
)

_CONTRACT: tuple[tuple[str, str, str, str], ...] = (
    (
        "sal-changed",
        "Parameter annotation changed",
        "SAL says otherwise about a parameter: whether it may be null, whether it is read or written, or how "
        "many elements it leads to.",
        _REVIEW,
    ),
    (
        "return-sal-changed",
        "Result annotation changed",
        "SAL says otherwise about a result: whether it may be null, or must be checked.",
        _REVIEW,
    ),
    (
        "must-use-changed",
        "Result need no longer be used, or must be",
        "The function's result is marked warn_unused_result on one side only, or ORT_MUST_USE_RESULT expands to "
        "something else: compilers stay silent about lost errors, or begin to warn.",
        _REVIEW,
    ),
)

_ADDITIVE: tuple[tuple[str, str, str, str], ...] = (
    (
        "slot-appended",
        "New slot",
        "A table grew at its end by a slot that the spec does not know.",
        _RECORD,
    ),
    (
        "field-appended",
        "New field",
        "A versioned struct grew at its end by a field that the spec does not know.",
        _RECORD,
    ),
    (
        "enumerator-added",
        "New enumerator",
        "An enum has a constant that the spec does not know.",
        _RECORD,
    ),
    ("type-added", "New type", "The header has a type that the spec does not know.", _RECORD),
    (
        "function-added",
        "New exported function",
        "The header declares an exported function that the spec does not know.",
        _RECORD,
    ),
    ("macro-added", "New macro", "The header has a macro that the spec does not know.", _RECORD),
    (
        "release-new",
        "New release",
        "The header's ORT_API_VERSION is newer than what it is compared with.",
        "run `update` on it, then review what it added",
    ),
)

_DOCUMENTATION: tuple[tuple[str, str, str, str], ...] = (
    (
        "doc-param-unknown",
        "\\param names no parameter",
        "The name is not that of a parameter in the declaration as the compiler sees it. Release macros call theirs `input`.",
        _REPORT,
    ),
    (
        "doc-param-missing",
        "Parameter without \\param",
        "The comment documents some of the parameters and leaves this one out.",
        _REPORT,
    ),
    (
        "doc-param-duplicate",
        "Parameter documented twice",
        "Two \\param commands of one comment name the same parameter.",
        _REPORT,
    ),
    (
        "doc-param-direction",
        "\\param direction contradicts SAL",
        "The comment says in or out, and the declaration's annotation says otherwise.",
        _REPORT,
    ),
    (
        "doc-group-nested",
        "Group opened inside itself",
        "A documentation group is opened again before it was closed, which Doxygen refuses.",
        "close the first, or remove the second",
    ),
    (
        "doc-group-unbalanced",
        "Group never closed, or closed too often",
        "The group markers of a file do not pair up, so what follows is filed under the wrong group.",
        "pair every opening marker with a closing one",
    ),
    (
        "doc-reference",
        "Reference that resolves to nothing",
        "`::Name` or `Type::Name` names nothing that the headers declare. A slot must be named with its table.",
        "write `Table::Slot`",
    ),
    (
        "doc-html",
        "Word taken for HTML",
        "Doxygen takes `<word>` for an HTML tag, and drops it from the page.",
        "escape it: `\\<word\\>`",
    ),
    (
        "doc-since-missing",
        "No \\since",
        "The comment of a slot does not say which release it came in, though its table or others of it do.",
        _REPORT,
    ),
    (
        "doc-since-wrong",
        "Wrong \\since",
        "The comment names another release than the first one that has the element.",
        _REPORT,
    ),
)

_UNREADABLE: tuple[tuple[str, str, str, str], ...] = (
    (
        "unreadable",
        "Declaration not understood",
        "A part of the header could not be read, so nothing is known about it.",
        "if it is valid C, report it to this project; until then compare it by hand",
    ),
)

_GROUPS = (
    (Severity.BREAKING, _BREAKING),
    (Severity.UNREADABLE, _UNREADABLE),
    (Severity.SOURCE, _SOURCE),
    (Severity.CONTRACT, _CONTRACT),
    (Severity.ADDITIVE, _ADDITIVE),
    (Severity.DOCUMENTATION, _DOCUMENTATION),
)

RULES: dict[str, Rule] = {
    name: Rule(name, severity, title, description, hint)
    for severity, group in _GROUPS
    for name, title, description, hint in group
}


def page() -> str:
    """All rules as the Markdown page that is kept in ``docs/rules.md``."""
    lines = [
        "# Rules",
        "",
        "What `check`, `diff` and `lint-docs` find. Printed by `ort-interop-gen rules --markdown`.",
        "A severity can be set by rule, with a reason: see [ci.md](ci.md).",
    ]
    for severity, _ in _GROUPS:
        lines += ["", f"## {severity.value}", ""]
        for rule in RULES.values():
            if rule.severity is severity:
                lines += [f"### {rule.id}", "", f"**{rule.title}.** {rule.description}"]
                lines += ["", f"What to do: {rule.hint}.", ""]
        lines.pop()
    return "\n".join(lines) + "\n"
