"""Constant expressions as C computes them, with the widths of ``int`` and its unsigned and longer kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pycparser import c_ast

MAX_DEPTH = 100
"""Deeper expressions and types are refused: no API needs them, and Python's stack is finite."""

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)([uUlL]*)\Z")
_CHARACTER = re.compile(r"'(?:\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)|([^\\]))'\Z")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class ConstantError(ValueError):
    """An expression that is not an integer constant, or that C does not define."""


@dataclass(frozen=True, slots=True)
class Value:
    """An integer with the type that C gives it."""

    number: int
    bits: int = 32
    signed: bool = True

    def fit(self) -> Value:
        """Reduced to the width of its type, as hardware does it."""
        number = self.number & ((1 << self.bits) - 1)
        if self.signed and number >> (self.bits - 1):
            number -= 1 << self.bits
        return Value(number, self.bits, self.signed)


def literal(text: str, long_bits: int = 64) -> Value:
    """An integer or character literal with the first type that holds it."""
    character = _CHARACTER.match(text)
    if character is not None:
        escape, plain = character.groups()
        if plain is not None:
            return Value(ord(plain))
        if escape[0] == "x":
            return Value(int(escape[1:], 16))
        return Value(
            int(escape, 8) if escape[0] in "01234567" else _ESCAPES.get(escape, ord(escape))
        )
    match = _INTEGER.match(text)
    if match is None:
        raise ConstantError(f"'{text}' is not an integer")
    digits, suffix = match[1], match[2].lower()
    decimal = digits[0] != "0" or digits == "0"
    if decimal:
        number = int(digits)
    elif digits[1:2] in "xX":
        number = int(digits, 16)
    elif digits[1:2] in "bB":
        number = int(digits[2:], 2)
    else:
        try:
            number = int(digits, 8)
        except ValueError:
            raise ConstantError(f"'{text}' is not an octal number") from None
    widths = [64] if "ll" in suffix else [long_bits, 64] if "l" in suffix else [32, long_bits, 64]
    for bits in widths:
        if "u" not in suffix and number < 1 << (bits - 1):
            return Value(number, bits, True)
        if ("u" in suffix or not decimal) and number < 1 << bits:
            return Value(number, bits, False)
    raise ConstantError(f"'{text}' does not fit any integer type")


def _common(left: Value, right: Value) -> tuple[int, bool]:
    bits = max(left.bits, right.bits)
    signed = all(v.signed for v in (left, right) if v.bits == bits)
    return bits, signed


class Evaluator:
    """Evaluates enumerators and array lengths; ``names`` are the constants that are known so far."""

    def __init__(self, names: Mapping[str, int], long_bits: int = 64) -> None:
        self.names = names
        self.long_bits = long_bits
        self.depth = 0

    def __call__(self, node: c_ast.Node) -> Value:
        """The value of an expression; :class:`ConstantError` says why there is none."""
        if self.depth == MAX_DEPTH:
            raise ConstantError(f"an expression nested more than {MAX_DEPTH} levels deep")
        self.depth += 1
        try:
            return self._evaluate(node)
        finally:
            self.depth -= 1

    def _evaluate(self, node: c_ast.Node) -> Value:
        if isinstance(node, c_ast.Constant):
            if node.type in ("string", "float", "double"):
                raise ConstantError(f"{node.value} is not an integer")
            return literal(node.value, self.long_bits)
        if isinstance(node, c_ast.ID):
            if node.name not in self.names:
                raise ConstantError(f"'{node.name}' is not a constant that is known here")
            number = self.names[node.name]
            fits_int = -(1 << 31) <= number < 1 << 31
            return Value(
                number, 32 if fits_int or 0 <= number < 1 << 32 else 64, fits_int or number < 0
            )
        if isinstance(node, c_ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, c_ast.BinaryOp):
            return self._binary(node)
        if isinstance(node, c_ast.TernaryOp):
            return self(node.iftrue) if self(node.cond).number else self(node.iffalse)
        if isinstance(node, c_ast.Cast):
            return self._cast(node)
        raise ConstantError("not an integer constant expression")

    def _unary(self, node: c_ast.UnaryOp) -> Value:
        if node.op not in ("-", "+", "~", "!"):
            raise ConstantError(f"'{node.op}' does not make an integer constant")
        value = self(node.expr)
        match node.op:
            case "-":
                return Value(-value.number, value.bits, value.signed).fit()
            case "~":
                return Value(~value.number, value.bits, value.signed).fit()
            case "!":
                return Value(int(not value.number))
        return value

    def _binary(self, node: c_ast.BinaryOp) -> Value:
        left, right, op = self(node.left), self(node.right), node.op
        if op in ("<<", ">>"):
            if not 0 <= right.number < left.bits:
                raise ConstantError(f"a shift by {right.number} is undefined for {left.bits} bits")
            number = left.number << right.number if op == "<<" else left.number >> right.number
            return Value(number, left.bits, left.signed).fit()
        if op == "&&":
            return Value(int(bool(left.number) and bool(right.number)))
        if op == "||":
            return Value(int(bool(left.number) or bool(right.number)))
        bits, signed = _common(left, right)
        a = Value(left.number, bits, signed).fit().number
        b = Value(right.number, bits, signed).fit().number
        if op in _COMPARE:
            return Value(int(_COMPARE[op](a, b)))
        if op in ("/", "%"):
            if b == 0:
                raise ConstantError("division by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return Value(quotient if op == "/" else a - b * quotient, bits, signed).fit()
        match op:
            case "+":
                number = a + b
            case "-":
                number = a - b
            case "*":
                number = a * b
            case "&":
                number = a & b
            case "|":
                number = a | b
            case "^":
                number = a ^ b
            case _:
                raise ConstantError(f"'{op}' does not make an integer constant")
        return Value(number, bits, signed).fit()

    def _cast(self, node: c_ast.Cast) -> Value:
        inner = node.to_type.type
        names = getattr(getattr(inner, "type", None), "names", None)
        widths = {
            "int": (32, True),
            "unsigned int": (32, False),
            "unsigned": (32, False),
            "int32_t": (32, True),
            "uint32_t": (32, False),
            "long": (self.long_bits, True),
            "unsigned long": (self.long_bits, False),
            "int64_t": (64, True),
            "uint64_t": (64, False),
            "long long": (64, True),
            "unsigned long long": (64, False),
            "size_t": (64, False),
        }
        name = " ".join(names) if names else ""
        if name not in widths:
            raise ConstantError(
                f"a cast to '{name or 'this type'}' is not an integer constant here"
            )
        bits, signed = widths[name]
        return Value(self(node.expr).number, bits, signed).fit()
