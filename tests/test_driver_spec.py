"""The driver's part of a backend's spec: what it refuses, and how its structs are laid out."""

from __future__ import annotations

import pytest
from ep_build import ROOT
from ort_interop_gen.render.driver_api import driver_api
from ort_interop_gen.spec import SpecErrors, load_texts
from ort_interop_gen.spec.driver import ROOM, driver_abi

MAIN = """\
versions: {floor: 24, newest: 26, ep_structs: 26}
enums:
  - name: OrtErrorCode
    since: 1
    constants: [{name: ORT_OK, value: 0}, {name: ORT_FAIL, value: 1}]
  - name: OrtExternalMemoryHandleType
    since: 24
    constants: [{name: MEMORY_FD, value: 3}]
"""

DRIVER = """\
backend: toy
title: A toy driver
ep: {name: Toy, vendor: Toys, vendor_id: 1, device_type: GPU, memory_device: GPU}
library: {linux: [libtoy.so.1]}
vendor_header: {name: toy/toy.h, defines: [TOY]}
result: toyResult
memory:
  - type: MEMORY_FD
    platforms: [linux]
    since: 24
    driver: {name: TOY_FD, value: 7}
    ownership: consumed
    doc: A descriptor.
methods:
  - {method: ImportMemory, calls: [toyImport]}
graphics:
  doc: |
    One paragraph.

    Another one.
  options:
    - {key: toy_queue, kind: index, doc: A queue.}
    - {key: UUID, kind: text, doc: The GPU.}
opaque:
  - {name: toyStream, tag: toyStream_st, role: GpuStream}
typedefs:
  - {declares: unsigned long long toyAddress}
enums:
  - name: toyResult
    constants:
      - {name: TOY_OK, value: 0}
      - {name: TOY_BAD, value: 1, status: ORT_FAIL}
  - name: toyType
    constants: [{name: TOY_FD, value: 7, when: TOY_VERSION >= 2}]
macros:
  - {name: TOY_FLAG, value: 4, role: GPU_FLAG}
structs:
  - name: toyDesc
    fields:
      - toyType type
      - union { int fd; struct { void* handle; long id; } win32; } handle
      - toyAddress size
  - name: toyProperties
    room: 100
    fields: ["char name[10]"]
functions:
  - name: toyImport
    symbol: toyImport_v2
    role: Import
    returns: toyResult
    params: [toyAddress* out, const toyDesc* desc]
  - name: toyFree
    optional: true
    returns: toyResult
    params: [toyAddress address]
    releases: address
"""


def load(text: str):
    return load_texts({"main.yaml": MAIN, "backends/toy.yaml": text}).backends["toy"].spec


# Each row: what is replaced, by what, and the line and what the error says.
BAD = [
    ("unknown key", "optional: true", "optionall: true", 53, "unknown key 'optionall'"),
    ("unknown type in a struct", "toyAddress size", "toyAddres size", 42, "unknown type 'toyAddres'"),
    ("unknown type in a union", "struct { void* handle;", "struct { nothing handle;", 41, "unknown type 'nothing'"),
    ("unknown parameter type", "const toyDesc* desc", "const toyDescc* desc", 51, "unknown type 'toyDescc'"),
    ("unknown result", "returns: toyResult", "returns: toyResul", 50, "unknown type 'toyResul'"),
    ("used before it is declared", "unsigned long long toyAddress", "toyDesc toyAddress", 27, "unknown type 'toyDesc'"),
    ("duplicate type", "name: toyProperties", "name: toyDesc", 43, "'toyDesc' is declared twice"),
    ("duplicate constant", "name: TOY_BAD", "name: TOY_OK", 32, "'TOY_OK' is declared twice"),
    ("duplicate field", "toyAddress size", "toyAddress type", 42, "duplicate field 'type'"),
    ("duplicate parameter", "const toyDesc* desc", "const toyDesc* out", 51, "duplicate parameter 'out'"),
    ("duplicate symbol", "name: toyFree", "name: toyImport_v2", 52, "symbol 'toyImport_v2' is also that of 'toyImport'"),
    ("duplicate role", "- name: toyFree", "- role: Import\n    name: toyFree", 52, "two functions have the role 'Import'"),
    ("built-in name", "name: toyProperties", "name: int", 43, "C keyword"),
    ("releases nothing known", "releases: address", "releases: adress", 56, "there is no parameter 'adress'"),
    ("result of no enum", "result: toyResult", "result: toyResultt", 6, "there is no enum 'toyResultt'"),
    ("result without success", "name: TOY_OK, value: 0", "name: TOY_OK, value: 2", 6, "no constant of value 0"),
    ("unknown status", "status: ORT_FAIL", "status: ORT_FAILED", 32, "unknown status code 'ORT_FAILED'"),
    ("status of another enum", "value: 7, when: TOY", "value: 7, status: ORT_FAIL, when: TOY", 34, "only constants of the result"),
    ("constant of no enum", "driver: {name: TOY_FD,", "driver: {name: TOY_FDD,", 11, "unknown constant 'TOY_FDD'"),
    ("constant of another value", "TOY_FD, value: 7}\n    own", "TOY_FD, value: 8}\n    own", 11, "'TOY_FD' is 7 where it is declared"),
    ("call of no function", "calls: [toyImport]", "calls: [toyImportt]", 15, "unknown driver function 'toyImportt'"),
    ("no library", "library: {linux: [libtoy.so.1]}\n", "", 46, "need a library"),
    ("struct by itself", "toyAddress size", "toyDesc size", 42, "unknown type 'toyDesc'"),
    ("array without a length", "char name[10]", "char name[]", 45, "an array needs its length"),
    ("bad condition", "TOY_VERSION >= 2", "TOY_VERSION is 2", 34, "is not valid here"),
    ("bad header", "name: toy/toy.h", "name: toy/toy", 5, "is not valid here"),
    ("room of nothing", "room: 100", "room: 0", 44, "greater than or equal to 1"),
    ("kind of no enum", "name: toyDesc\n", "name: toyDesc\n    kind: TOY_FDD\n", 39, "'TOY_FDD' is no constant of the type of 'type'"),
    ("kind of another enum", "name: toyDesc\n", "name: toyDesc\n    kind: TOY_OK\n", 39, "'TOY_OK' is no constant of the type of 'type'"),
    ("kind of no enum's struct", "room: 100\n", "kind: TOY_FD\n    room: 100\n", 44, "'TOY_FD' is no constant of the type of 'name'"),
    ("unknown kind of option", "kind: text", "kind: string", 23, "input should be 'handle', 'index', 'flag' or 'text'"),
    ("options that differ by case", "key: UUID", "key: Toy_Queue", 23, "'Toy_Queue' is also 'toy_queue'"),
    ("value too large", "value: 4, role", "value: 4294967296, role", 36, "less than or equal to 2147483647"),
]  # fmt: skip


@pytest.mark.parametrize("row", BAD, ids=[row[0] for row in BAD])
def test_bad_drivers_are_named_with_their_place(row):
    _, old, new, line, message = row
    assert DRIVER.count(old) >= 1, "the row changes nothing"
    with pytest.raises(SpecErrors) as caught:
        load(DRIVER.replace(old, new, 1))
    shown = str(caught.value)
    assert f"toy.yaml:{line}:" in shown, shown
    assert message in shown, shown


def test_layouts_of_both_models():
    abi = driver_abi(load(DRIVER))
    desc = abi.structs["toyDesc"]
    assert [(f.name, f.offset, f.offset_win64) for f in desc.fields] == [
        ("type", 0, 0),
        ("handle", 8, 8),
        ("size", 24, 24),
    ]
    assert (desc.size, desc.size_win64) == (32, 32)
    properties = abi.structs["toyProperties"]
    assert properties.size == 110 and properties.fields[-1].name == ROOM


def test_assertions_reach_into_unions_and_spare_what_is_left_open():
    assertions = driver_api(load(DRIVER)).assertions
    conditions = [condition for _, condition in assertions]
    assert "offsetof(toyDesc, handle.win32.id) == DRIVER_BY_MODEL(16, 16)" in conditions
    assert "offsetof(toyProperties, name) == DRIVER_BY_MODEL(0, 0)" in conditions
    assert not [c for c in conditions if "sizeof(toyProperties)" in c or ROOM in c]
    assert ("TOY_VERSION >= 2", "TOY_FD == 7") in assertions


EXTENSIONS = """\
extensions:
  - {role: sharing, name: TOY_sharing_win32, call: toyShareHandle, platforms: [windows]}
  - {role: sharing, name: TOY_sharing_fd, call: toyShareFd, platforms: [linux]}
  - {role: identity, name: TOY_identity}
"""


def test_extensions_are_known_by_their_roles():
    api = driver_api(load(DRIVER + EXTENSIONS))
    assert api.extension_roles == ("DRIVER_SHARING", "DRIVER_IDENTITY")
    windows, linux = api.extensions
    assert [e.call for e in windows] == ["toyShareHandle", None]
    assert [e.name for e in linux] == ["TOY_sharing_fd", "TOY_identity"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("platforms: [linux]", "platforms: [linux, windows]", "two extensions have the role 'sharing' on windows"),
        ("role: sharing, name: TOY_sharing_fd", "role: share, name: TOY_sharing_fd", "there is no extension of role 'sharing' on linux"),
    ],
)  # fmt: skip
def test_roles_of_extensions_are_checked(old, new, message):
    with pytest.raises(SpecErrors, match=message):
        load(DRIVER + EXTENSIONS.replace(old, new))


def test_options_have_names_in_c():
    api = driver_api(load(DRIVER))
    assert [(o.key, o.macro, o.field, o.kind, o.type) for o in api.options] == [
        ("toy_queue", "TOY_OPTION_QUEUE", "queue", "EP_OPTION_INDEX", "uint32_t"),
        ("UUID", "TOY_OPTION_UUID", "uuid", "EP_OPTION_TEXT", "const char*"),
    ]
    assert [o.key for o in api.values] == ["toy_queue"]
    assert api.options_doc == ("", "One paragraph.", "", "Another one.")


def test_a_kind_is_that_of_one_struct():
    known = DRIVER.replace("name: toyDesc\n", "name: toyDesc\n    kind: TOY_FD\n")
    assert driver_api(load(known)).kinds == (("toyDesc", "type", "TOY_FD"),)
    twice = known.replace("room: 100\n    fields: [", "kind: TOY_FD\n    fields: [toyType type, ")
    with pytest.raises(SpecErrors, match="'TOY_FD' is already the kind of 'toyDesc'"):
        load(twice)


def test_entry_points_have_their_symbols_and_signatures():
    imported, freed = driver_api(load(DRIVER)).functions
    assert (imported.slot, imported.symbol, imported.optional) == ("Import", "toyImport_v2", False)
    assert imported.pointer == (
        "toyResult (DRIVER_CALL* Import)(toyAddress* out, const toyDesc* desc)"
    )
    assert (freed.slot, freed.symbol, freed.optional) == ("toyFree", "toyFree", True)


def test_every_backend_of_the_project_has_its_folder():
    for spec in sorted((ROOT / "spec" / "backends").glob("*.yaml")):
        assert (ROOT / "templates" / "ep_c" / "drivers" / spec.stem).is_dir(), spec.stem
