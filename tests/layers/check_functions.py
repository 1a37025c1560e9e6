#!/usr/bin/env python3
"""No function of include/tensorpar/ is longer than a page: `check_functions.py SOURCE_FOLDER [LINES]`, or `--self-test`.

A function is a brace behind a parameter list (with what may stand between: const, noexcept, a result type, initialisers) that no `if`,
`for` or the like begins; a lambda counts as part of the function around it. Comments, strings and preprocessor lines are left out before
braces are counted; lines of them count."""
import pathlib
import re
import sys

LIMIT = 80
# comments, raw strings, strings, characters (not the ' of 1'000)
TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
BEHIND = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|&&?|requires\b[^{};]*|->[^;{}]*|:\s[^;]*|\s)*$", re.S)
CONTROL = re.compile(r"^(?:\}?\s*else\s+)?(?:if|for|while|switch|catch)\b")
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?[^()]*$", re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def functions(text):
    """(lines, name, line of the opening brace) of every function."""
    code = DIRECTIVE.sub(blank, TEXT.sub(blank, text))
    found, stack, start, depth = [], [], 0, 0            # depth: of parentheses within the innermost braces
    for i, c in enumerate(code):
        depth += (c == "(") - (c == ")")
        if c == ";" and depth == 0:
            start = i + 1
        elif c == "{":
            values = not code[i - 1].isspace() or code[:i].rstrip()[-1:] in "=,("       # x{1}, = {}, f({})
            stack.append((i, code[start:i].strip(), start if values else None, depth))
            start, depth = i + 1, 0
        elif c == "}" and stack:
            brace, head, around, depth = stack.pop()
            start = i + 1 if around is None else around
            if around is not None or not BEHIND.search(head) or CONTROL.match(head) or LAMBDA.search(head):
                continue
            name = re.search(r"([~\w]+|operator\W+)\s*$", head.split("(")[0])
            found.append((code.count("\n", brace, i) + 1, name[1] if name else "?", code.count("\n", 0, brace) + 1))
    return found


def self_test():
    body = "  x();\n" * 90
    for head in ("inline int f(int x)", "template <class T> void f(T const& x) const noexcept", "auto f() -> std::vector<int>",
                 "stage(int a) : a_(a), b_{1}", "void f(options o = {}, std::vector<int> x = {1, 2})", "bool operator()(int worker) const"):
        long = [lines for lines, _, _ in functions(head + " {\n" + body + "}\n")]
        assert long and max(long) == 92, (head, long)
    for head in ("if (x)", "for (int i = 0; i < n; ++i)", "} else if (f(x))", "namespace a", "struct b : c", "auto g = [&](int x)", "enum class e : int"):
        assert not functions(head + " {\n" + body + "}\n"), head
    assert functions('void f() {\n  g("{", \'{\', R"x({)x");  // {\n}\nvoid h() {\n}\n') == [(3, "f", 1), (2, "h", 4)]
    assert functions("#define M(x) { x\nvoid f() {\n}\n") == [(2, "f", 2)]
    print("self-test: all as expected")


def main(root, limit):
    headers = [p for p in sorted((root / "include" / "tensorpar").rglob("*")) if p.suffix in (".hpp", ".cuh")]
    all_of = [(lines, str(p.relative_to(root)), at, name) for p in headers for lines, name, at in functions(p.read_text())]
    if not all_of:
        raise SystemExit(f"no function is in {root}/include/tensorpar")
    long = sorted((f for f in all_of if f[0] > limit), reverse=True)
    for lines, path, at, name in long:
        print(f"{path}:{at}: {name} has {lines} lines, more than {limit}")
    print(f"{len(all_of)} functions in {len(headers)} headers, longest {max(all_of)[0]} lines; {len(long)} faults")
    return 1 if long else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: check_functions.py SOURCE_FOLDER [LINES] | --self-test")
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else LIMIT))
