"""Print the model's functions as C declarations, annotations and parameter names included."""

from __future__ import annotations

from ..spec.abi import Field, Function, Param
from ..spec.ctype import declare


def sal_text(words: tuple[str, ...]) -> str:
    """SAL annotations as they stand before a declaration."""
    return "".join(f"{word} " for word in words)


def parameter(param: Param) -> str:
    """One parameter: ``_In_ const OrtEpDevice* ep_device``."""
    return sal_text(param.sal) + declare(param.type, param.name)


def parameters(function: Function) -> str:
    """What stands in the parentheses of a signature."""
    parts = [parameter(p) for p in function.params] + (["..."] if function.variadic else [])
    return ", ".join(parts) or "void"


def _with_result(function: Function, declarator: str) -> str:
    must_use = " ORT_MUST_USE_RESULT" if function.must_use else ""
    return f"{sal_text(function.return_sal)}{declare(function.returns, declarator)}{must_use}"


def slot(name: str, function: Function) -> str:
    """A function pointer named ``name``: a slot of a table, or with ``typedef`` before it a type."""
    call = "ORT_API_CALL" if function.api_call else ""
    return _with_result(function, f"({call}* {name})({parameters(function)})")


def prototype(name: str, function: Function) -> str:
    """A prototype of a function named ``name``."""
    call = "ORT_API_CALL " if function.api_call else ""
    return _with_result(function, f"{call}{name}({parameters(function)})")


def member(field: Field) -> str:
    """A field or slot of a struct, without the semicolon."""
    return slot(field.name, field.function) if field.function else declare(field.type, field.name)
