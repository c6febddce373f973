"""The language as docs/language.md describes it, read into trees. Written from that page alone, so that no mistake is shared with the compiler.

A tree is a tuple: ("number", text), ("name", n), ("read", array, indices), ("unary", op, a), ("binary", op, a, b), ("reduce", op, axes, body),
("apply", callee, axes, arguments) over named axes, ("call", callee, arguments), ("text", t); the index ".." stands for the callee's own axes.
"""
import re
from dataclasses import dataclass, field

REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")
WORDS = ("and", "or", "not")
TOKEN = re.compile(r'\s*(?:(\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)|([^\W\d]\w*)|("[^"]*")|(\.\.|->|//|\*\*|<=|>=|==|!=|[-+*/%^<>=()\[\],:]))')
CONTINUES = ("+", "-", "*", "/", "//", "%", "^", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or", "=", "->")


class LanguageError(Exception):
    pass


@dataclass
class Array:
    name: str
    axes: list  # names, or index trees in the target of a call; ".." is not among them
    type: str | None = None
    default: tuple | None = None


@dataclass
class Equation:
    targets: list
    body: tuple


@dataclass
class Definition:
    name: str
    arguments: list
    results: list
    equations: list = field(default_factory=list)
    sizes: list = field(default_factory=list)  # (name, tree), in the order of the text


@dataclass
class Token:
    kind: str  # number, name, text, sign or end
    text: str
    spaced: bool  # white space stands before it


def tokens_of(line):
    tokens, at = [], 0
    line = line.rstrip()
    while at < len(line):
        match = TOKEN.match(line, at)
        if not match:
            raise LanguageError(f"cannot read {line[at:]!r}")
        kind = ("number", "name", "text", "sign")[match.lastindex - 1]
        tokens.append(Token(kind, match[match.lastindex], match.start(match.lastindex) > at))
        at = match.end()
    return tokens + [Token("end", "", True)]


def logical_lines(text):
    """(indentation, line): a line goes on inside brackets, after an operator or a comma, and before a line that begins with an operator."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"#.*", "", line).rstrip()
        if not line.strip():
            continue
        if lines:
            before = lines[-1][1]
            tokens = tokens_of(before)[:-1]
            depth = sum(t.text in ("(", "[") for t in tokens) - sum(t.text in (")", "]") for t in tokens)
            first = tokens_of(line)[0].text
            if depth > 0 or tokens[-1].text in CONTINUES + (",", "not") or first in CONTINUES:
                lines[-1] = (lines[-1][0], before + " " + line.strip())
                continue
        lines.append((len(line) - len(line.lstrip()), line))
    return lines


class Parser:
    def __init__(self, line):
        self.tokens, self.at = tokens_of(line), 0

    @property
    def next(self):
        return self.tokens[self.at]

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *texts):
        if self.next.kind in ("sign", "name") and self.next.text in texts:
            return self.take().text
        return None

    def expect(self, text):
        if not self.accept(text):
            raise LanguageError(f"expected {text!r}, found {self.next.text!r}")

    def name(self):
        if self.next.kind != "name":
            raise LanguageError(f"expected a name, found {self.next.text!r}")
        return self.take().text

    def end(self):
        if self.next.kind != "end":
            raise LanguageError(f"expected the line's end, found {self.next.text!r}")

    def listed(self, item, close):
        items = []
        if not self.accept(close):
            items.append(item())
            while self.accept(","):
                items.append(item())
            self.expect(close)
        return items

    # ---- definitions and equations
    def array(self):
        array = Array(self.name(), [])
        if self.accept("["):
            array.axes = self.listed(self.name, "]")
        if self.accept(":"):
            array.type = self.name()
        if self.accept("="):
            array.default = self.expression()
        return array

    def head(self):
        name = self.name()
        self.expect("(")
        arguments = self.listed(self.array, ")")
        self.expect("->")
        return Definition(name, arguments, self.several(self.array))

    def several(self, item):
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.end()
        return items

    def target(self):
        array = Array(self.name(), [])
        if self.accept("["):
            array.axes = self.listed(self.name, "]")
        if self.accept(":"):
            array.type = self.name()
        return array

    def equation(self):
        targets = [self.target()]
        while self.accept(","):
            targets.append(self.target())
        self.expect("=")
        body = self.expression()
        self.end()
        return Equation(targets, body)

    def sizes(self):
        """(name, tree) of a = b = 3, c = 4."""
        def one():
            chain = [self.expression()]
            while self.accept("="):
                chain.append(self.expression())
            return [(left[1], chain[-1]) for left in chain[:-1]]
        return sum(self.several(one), [])

    # ---- expressions, loose to tight
    def expression(self):
        a = self.conjunction()
        while self.accept("or"):
            a = ("binary", "or", a, self.conjunction())
        return a

    def conjunction(self):
        a = self.negation()
        while self.accept("and"):
            a = ("binary", "and", a, self.negation())
        return a

    def negation(self):
        return ("unary", "not", self.negation()) if self.accept("not") else self.comparison()

    def comparison(self):
        a = self.sum()
        if op := self.accept("<", "<=", ">", ">=", "==", "!="):
            a = ("binary", op, a, self.sum())
        return a

    def sum(self):
        a = self.product()
        while op := self.accept("+", "-"):
            a = ("binary", op, a, self.product())
        return a

    def product(self):
        a = self.signed()
        while op := self.accept("*", "/", "//", "%"):
            a = ("binary", op, a, self.signed())
        return a

    def signed(self):
        return ("unary", "-", self.signed()) if self.accept("-") else self.power()

    def power(self):
        base = self.operand()
        return ("binary", "^", base, self.signed()) if self.accept("^", "**") else base

    def operand(self):
        token = self.take()
        if token.kind == "number":
            return ("number", token.text)
        if token.kind == "text":
            return ("text", token.text[1:-1])
        if token.text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        if token.kind != "name" or token.text in WORDS:
            raise LanguageError(f"expected an operand, found {token.text!r}")
        if self.accept("["):
            return ("read", token.text, self.listed(self.index, "]"))
        if self.next.text == "(":
            return self.called(token.text)
        return ("name", token.text)

    def index(self):
        return ".." if self.accept("..") else self.expression()

    def called(self, name):
        axes = self.axes_before_an_operand()
        self.expect("(")
        if axes is None:
            return ("call", name, self.listed(self.expression, ")"))
        self.at += 2 * len(axes)
        if name in REDUCTIONS:
            return ("reduce", name, axes, self.expression())
        return ("apply", name, axes, self.operands())

    def axes_before_an_operand(self):
        """The names in the parentheses that come, where what follows them is what they are applied to."""
        at, axes = self.at + 1, []
        while self.tokens[at].kind == "name" and self.tokens[at + 1].text in (",", ")"):
            axes.append(self.tokens[at].text)
            at += 2
            if self.tokens[at - 1].text == ")":
                break
        if not axes or self.tokens[at - 1].text != ")":
            return None
        token, after = self.tokens[at], self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        begins = (token.kind in ("number", "name") and token.text not in ("and", "or")) or token.text == "("
        signed = token.text == "-" and token.spaced and not after.spaced
        return axes if begins or signed else None

    def operands(self):
        """Several arguments in parentheses, or all that stands to the right."""
        start = self.at
        if self.accept("("):
            try:
                arguments = self.listed(self.expression, ")")
                if len(arguments) > 1:
                    return arguments
            except LanguageError:
                pass
            self.at = start
        return [self.expression()]


def parse(text):
    """The definitions by name; the sizes of the main diagram are those of the text's own and below the last definition."""
    definitions, skipped, outer = {}, None, []
    current = None
    for indent, line in logical_lines(text):
        if skipped is not None and indent > skipped:
            continue
        skipped = None
        word = tokens_of(line)[0].text
        if word == "schedule":
            skipped = indent
        elif word == "sizes":
            parser = Parser(line)
            parser.take()
            (current.sizes if indent > 0 else outer).extend(parser.sizes())
        elif indent == 0:
            current = Parser(line).head()
            definitions[current.name] = current
        else:
            current.equations.append(Parser(line).equation())
    return definitions, outer
