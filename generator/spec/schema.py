"""What a spec file may say: strict pydantic models, one for each kind of YAML node.

These models check one node at a time (unknown keys, identifiers, ranges, readable declarations);
:mod:`.resolve` checks what only the whole spec can show, such as references and release order.
"""

from __future__ import annotations

import difflib
import keyword
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from .ctype import (
    IDENTIFIER,
    VOID,
    Array,
    CTypeError,
    FunctionType,
    parse_declaration,
    parse_type,
    unsound,
)
from .ctype import Declaration as Declared
from .words import C_KEYWORDS, CPP_KEYWORDS, SAL_FAMILIES, STANDARD_MACROS

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1
_OTHER_NAME = "use another name"


class Fault(ValueError):
    """A value that cannot be used, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def _identifier(text: str) -> str:
    for language, words in (("C", C_KEYWORDS), ("C++", CPP_KEYWORDS)):
        if text in words:
            raise Fault(f"'{text}' is a {language} keyword and cannot name anything", _OTHER_NAME)
    return text


def _free_name(text: str) -> str:
    """A name that generated C may declare."""
    if text in STANDARD_MACROS:
        raise Fault(f"'{text}' is a macro of C's own headers and cannot name anything", _OTHER_NAME)
    if text[:1] == "_" and text[1:2].isupper():
        raise Fault(f"'{text}' is reserved: C keeps such names to itself", _OTHER_NAME)
    return _identifier(text)


def _python_name(text: str) -> str:
    """A name that is written as an attribute in Python, where there is no other spelling of it."""
    if keyword.iskeyword(text):
        raise Fault(f"'{text}' is a Python keyword and cannot name a member", _OTHER_NAME)
    return _free_name(text)


def _field_name(text: str) -> str:
    """The name of an attribute of a ctypes structure; ORT itself has one that begins with ``__``."""
    if text == "self":
        raise Fault(
            "'self' is the structure itself in Python and cannot name a member", _OTHER_NAME
        )
    if text[0] == text[-1] == "_":
        raise Fault(f"'{text}' is reserved: ctypes keeps such names to itself", _OTHER_NAME)
    return _python_name(text)


def _slot_name(text: str) -> str:
    if text.startswith("__"):
        raise Fault(f"'{text}' is reserved: C keeps such names to itself", _OTHER_NAME)
    return _field_name(text)


def _global_name(text: str) -> str:
    """The name of a type, an enumerator or a function."""
    if text[0] == "_":
        raise Fault(
            f"'{text}' is reserved: C keeps names that begin with '_' to itself, but for members",
            _OTHER_NAME,
        )
    return _python_name(text)


def _constant_name(text: str) -> str:
    if text == "mro":
        raise Fault("'mro' is a method of Python's enumerations and cannot name one", _OTHER_NAME)
    return _global_name(text)


def _type(text: str) -> str:
    try:
        ctype = parse_type(text)
    except CTypeError as error:
        raise Fault(
            f"'{text}' is not a C type: {error} (at character {error.offset + 1})",
            "write a type alone, such as 'const OrtValue*'",
        ) from None
    if reason := "" if ctype == VOID else unsound(ctype):
        raise Fault(f"'{text}' cannot be used here: {reason}", "write the type as C has it")
    return text


def _result(text: str) -> str:
    if isinstance(parse_type(_type(text)), (Array, FunctionType)):
        raise Fault(
            f"a function cannot return '{text}'", "return a pointer, or use an out-parameter"
        )
    return text


def _declared(text: str, parameter: bool) -> Declared:
    try:
        found = parse_declaration(text)
    except CTypeError as error:
        raise Fault(
            f"'{text}' is not a C declaration: {error} (at character {error.offset + 1})",
            "write one declaration, such as 'const char* name'",
        ) from None
    if reason := unsound(found.type, parameter=parameter):
        raise Fault(f"'{text}' cannot be declared: {reason}", "write the type as C has it")
    for word in found.sal:
        family = word[1:].partition("_")[0]
        if family not in SAL_FAMILIES:
            close = difflib.get_close_matches(family, sorted(SAL_FAMILIES), 1)
            hint = f"did you mean '_{close[0]}_...'?" if close else "write one as sal.h has it"
            raise Fault(f"'{word}' is not a SAL annotation", hint)
    if parameter and found.name.startswith("__"):
        raise Fault(f"'{found.name}' is reserved: C keeps such names to itself", _OTHER_NAME)
    _free_name(found.name)
    return found


def _parameter(text: str) -> str:
    _declared(text, parameter=True)
    return text


def _declaration(text: str) -> str:
    found = _declared(text, parameter=False)
    if not found.name:
        raise Fault(f"'{text}' declares no name", "write 'type name'")
    if isinstance(found.type, FunctionType):
        raise Fault(f"'{text}' declares a function", "write a function pointer, or a 'slot:'")
    _field_name(found.name)
    return text


_Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=120)]
Identifier = Annotated[_Word, AfterValidator(_identifier)]
SlotName = Annotated[_Word, AfterValidator(_slot_name)]
GlobalName = Annotated[_Word, AfterValidator(_global_name)]
ConstantName = Annotated[_Word, AfterValidator(_constant_name)]
TypeText = Annotated[str, AfterValidator(_type)]
ResultText = Annotated[str, AfterValidator(_result)]
Declaration = Annotated[str, AfterValidator(_declaration)]
Parameter = Annotated[str, AfterValidator(_parameter)]
"""A parameter's declaration; ORT leaves a few of them without a name."""
Release = Annotated[int, Field(ge=1, le=999)]
"""The minor number of an ORT release, which is also its API version: 24 for 1.24."""
Text = Annotated[str, StringConstraints(min_length=1)]
Header = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+\.h$")]
SlotRef = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*$")
]
"""A slot of a table, such as ``OrtInteropApi.ImportMemory``."""
Sal = Annotated[str, StringConstraints(pattern=r"^_[A-Z][A-Za-z]*(_[a-z]+)*_(\(.*\))?$")]


class Node(BaseModel):
    """The base of every spec node: nothing unknown, nothing converted, nothing changed later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Rename(Node):
    """An element that had another name before a release, with the same value or place."""

    name: ConstantName
    release: Release
    alias: bool = False
    """Whether headers from that release on keep the old name as a macro."""


class ConstantSpec(Node):
    name: ConstantName
    value: Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX)]
    since: Release | None = None
    doc: Text | None = None
    alias_of: Identifier | None = None
    """Another constant of this enum that has the same value."""
    renamed: Rename | None = None


class Moved(Node):
    """Which header declared an element before a release."""

    header: Header
    release: Release


class Element(Node):
    """What enums, structs and the like have in common."""

    name: GlobalName
    since: Release = 1
    header: Header | None = None
    moved: Moved | None = None
    doc: Text | None = None


class EnumSpec(Element):
    flags: bool = False
    """The constants are bits that may be combined."""
    constants: Annotated[list[ConstantSpec], Field(min_length=1)]


class ParamBefore(Node):
    """How a parameter was declared before a release."""

    release: Release
    decl: Parameter


class ParamSpec(Node):
    decl: Parameter
    doc: Text | None = None
    direction: Literal["in", "out", "inout"] | None = None
    nullable: bool | None = None
    before: list[ParamBefore] = []


def _param_kind(value: Any) -> str:
    return "<text>" if isinstance(value, str) else "<mapping>"


ParamItem = Annotated[
    Annotated[Parameter, Tag("<text>")] | Annotated[ParamSpec, Tag("<mapping>")],
    Discriminator(_param_kind),
]


class ErrorCase(Node):
    """A status that a function answers, and when."""

    code: Identifier
    when: Text


class Borrow(Node):
    """A parameter that the callee keeps using after the call returns."""

    param: Identifier
    until: Text


Unsupported = Literal["null_result", "false", "not_implemented", "null_table"]
Threads = Literal["any", "one_at_a_time", "setup"]


class Semantics(Node):
    """What a function means beyond its types; the tables of ``contract`` as fields."""

    doc: Text | None = None
    creates: Identifier | None = None
    """The out-parameter that receives a new object, which the caller must release."""
    releases: Identifier | None = None
    """The parameter whose object this function ends."""
    borrows: list[Borrow] = []
    unsupported: Unsupported | None = None
    """How the feature's absence is answered: success and null, success and false, a status, a null table."""
    threads: Threads | None = None
    """``any``: from any thread at once; ``one_at_a_time``: the caller serialises calls on one object;
    ``setup``: before and after, not while work is in flight."""
    errors: list[ErrorCase] = []


class FunctionSpec(Semantics):
    """A signature.  ``returns: status`` is ORT's status result: ``OrtStatusPtr`` that must be checked and released."""

    returns: ResultText
    params: list[ParamItem] = []
    return_sal: list[Sal] = []
    must_use: bool = False
    call: Literal["api", "c"] = "api"
    """``c`` for the few callbacks that are declared without ``ORT_API_CALL``."""


class SlotSpec(FunctionSpec):
    """A slot of a function table."""

    slot: SlotName
    since: Release | None = None
    documented_since: Release | None = None
    """What ORT's own comment claims, where that is not when the slot came."""


class FieldSpec(Node):
    """A data field; with ``union`` the field is an anonymous union of the declarations."""

    field: Text
    since: Release | None = None
    documented_since: Release | None = None
    union: list[Declaration] = []
    doc: Text | None = None

    @model_validator(mode="after")
    def _has_type(self) -> FieldSpec:
        if self.union:
            if not IDENTIFIER.match(self.field):
                raise Fault("a field with 'union:' has a type already", "write just its name")
            _field_name(self.field)
        elif IDENTIFIER.match(self.field):
            raise Fault(f"'{self.field}' has no type", "write 'type name', or give 'union:'")
        else:
            _declaration(self.field)
        return self


def _member_kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    return "<slot>" if "slot" in keys else "<field>"


MemberItem = Annotated[
    Annotated[SlotSpec, Tag("<slot>")] | Annotated[FieldSpec, Tag("<field>")],
    Discriminator(_member_kind),
]


class StructSpec(Element):
    kind: Literal["table", "implementation", "descriptor", "handle", "plain"] = "plain"
    """``table``: filled by ORT; ``implementation``: filled by an EP; ``descriptor``: filled by a client and stamped
    with its version; ``handle``: a base struct that an EP derives from; ``plain``: anything else."""
    version_field: Identifier | None = None
    """The field that carries the API version the struct was filled for."""
    fields: Annotated[list[MemberItem], Field(min_length=1)]


class OpaqueSpec(Element):
    pass


class TypedefSpec(Element):
    """A typedef of a type (``type``) or of a function pointer (``returns`` and ``params``)."""

    type: TypeText | None = None
    function: FunctionSpec | None = None

    @model_validator(mode="after")
    def _one_of(self) -> TypedefSpec:
        if (self.type is None) == (self.function is None):
            raise Fault("a typedef has either 'type:' or 'function:'", "give exactly one of them")
        return self


class ExportSpec(Element):
    """A function that the library exports by name; ``optional`` ones are missing from some builds."""

    function: FunctionSpec
    optional: bool = False


class MacroSpec(Node):
    name: Identifier
    value: Text
    since: Release = 1


class HandleSpec(Node):
    """The life of an object that the API hands out."""

    type: Identifier
    doc: Text
    released_by: SlotRef
    must_not_outlive: list[Identifier] = []
    """Types whose objects must still exist while this one is used."""
    since: Release


class AnnotateSpec(Semantics):
    """Semantics for a slot that the mechanical file declares."""

    slot: SlotRef
    params: dict[Identifier, Text] = {}


class Versions(Node):
    """Which releases the spec speaks of."""

    floor: Release
    """The oldest release that has the interop API."""
    newest: Release
    """The newest release whose public table the spec knows."""
    ep_structs: Release
    """The newest release whose EP structs the spec knows whole; nothing is ever stamped above it."""

    @model_validator(mode="after")
    def _ordered(self) -> Versions:
        if not self.floor <= self.ep_structs <= self.newest:
            raise Fault(
                "releases must be ordered: floor <= ep_structs <= newest",
                "correct one of the three",
            )
        return self


class SpecFile(Node):
    """One YAML file of the spec."""

    header: Header = "onnxruntime_c_api.h"
    """The ORT header that declares the elements which name none themselves."""
    versions: Versions | None = None
    enums: list[EnumSpec] = []
    opaque: list[OpaqueSpec] = []
    structs: list[StructSpec] = []
    typedefs: list[TypedefSpec] = []
    functions: list[ExportSpec] = []
    macros: list[MacroSpec] = []
    handles: list[HandleSpec] = []
    annotate: list[AnnotateSpec] = []
