#!/usr/bin/env python3
"""Public names: how many stand directly in namespace tensorpar, and which of them nobody uses.

`check_names.py SOURCE_FOLDER`, or `--self-test`, or `--list SOURCE_FOLDER`. A public name is a type, function, variable or concept that include/tensorpar/
declares in a namespace without `detail`. It is used where its word stands in another header, or a second time in its own, or in
examples/, bench/, docs/ or the README. tests/layers/unused_names.txt lists those that may stand unused, each with a reason."""
import collections
import pathlib
import re
import sys

TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
MOST = 300


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def without_templates(head):
    """A declaration without its template heads, requires clauses of such, attributes and leading specifiers."""
    head = re.sub(r"\[\[.*?\]\]", " ", head).strip()
    while head.startswith("template"):
        depth, i = 0, head.find("<")
        for i in range(i, len(head)):
            depth += (head[i] == "<") - (head[i] == ">" and head[i - 1] != "-")
            if depth == 0:
                break
        head = head[i + 1:].strip()
        if re.match(r"requires\s*\(", head):
            depth = 0
            for i in range(head.index("("), len(head)):
                depth += (head[i] == "(") - (head[i] == ")")
                if depth == 0:
                    break
            head = head[i + 1:].strip()
        elif re.match(r"requires\b", head):
            depth, i = 0, len("requires")
            while i < len(head):
                depth += (head[i] in "(<") - (head[i] in ")>")
                if depth == 0 and re.match(r"\s(?:inline|constexpr|struct|class|using|auto|bool|double|void|int|std::|[a-z_:]+(?:<[^<>]*>)?\s+\w+\s*\()", head[i:]):
                    break
                i += 1
            head = head[i:].strip()
    return head


def name_of(head):
    """The name that a declaration at namespace scope declares; None where it declares nothing new."""
    head = without_templates(head)
    if not head or re.match(r"(extern template|template\b|static_assert|using namespace|namespace|public:|friend)", head):
        return None
    m = re.match(r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(\w+)(\s*<)?", head)
    if m:
        return None if m.group(2) else m.group(1)
    m = re.match(r"(?:using|concept)\s+(\w+)\s*=", head)
    if m:
        return m.group(1)
    if head.startswith("using"):
        return None
    if "operator" in head.split("(")[0]:
        return None
    m = re.search(r"([A-Za-z_]\w*)\s*\(", re.sub(r"\b(?:decltype|noexcept|alignas|explicit)\s*\([^()]*\)", " ", head))
    variable = re.match(r"(?:inline\s+|static\s+|constexpr\s+|constinit\s+)*[\w:<>,\s*&]+?\b(\w+)\s*(?:\[[^\]]*\])?\s*(?:=|\{|$)", head)
    if m and not (variable and variable.end() <= m.start()):
        return None if "::" in head[:m.start() + len(m.group(1))].split()[-1] else m.group(1)
    return variable.group(1) if variable and re.match(r"(?:inline|constexpr|static|constinit)\b", head) else None


def declared(text):
    """(namespace, name) of what a header declares, in order."""
    code = DIRECTIVE.sub(blank, TEXT.sub(blank, text))
    spaces, start, i = [], 0, 0
    while i < len(code):
        c = code[i]
        if c in ";{":
            head = code[start:i].strip()
            space = re.match(r"(?:inline\s+)?namespace\b\s*([\w:]*)$", head)
            if c == "{" and space:
                spaces.append(space.group(1))
            else:
                name = name_of(head)
                if name:
                    yield "::".join(s for s in spaces if s), name
                if c == "{":                                      # past the body
                    depth = 1
                    while depth and i + 1 < len(code):
                        i += 1
                        depth += (code[i] == "{") - (code[i] == "}")
                    rest = re.match(r"\s*;?", code[i + 1:])
                    i += rest.end()
            start = i + 1
        elif c == "}" and spaces:
            spaces.pop()
            start = i + 1
        elif c == "(":                                            # parameters may hold braces
            depth = 1
            while depth and i + 1 < len(code):
                i += 1
                depth += (code[i] == "(") - (code[i] == ")")
        i += 1


def self_test():
    text = """
namespace tensorpar { struct a { int f(); }; template <class T> concept b = requires(T t) { t.x(); };
template <class T> requires(b<T> && sizeof(T) > 1) inline int c(T const& x = {}) { return 1; }
inline constexpr double d = 1; enum class e : int { x, y }; using f = int; struct g;
namespace detail { int hidden(); } extern template class h<int>; template <> struct i<int> { };
std::vector<int> j(int x); inline bool operator==(a, a) { return true; } constexpr std::string_view name_of(e x) { return {}; }
namespace op { struct k {}; } inline int const l[] = {1, 2}; auto m(int x) -> decltype(x); }
"""
    got = [f"{s}::{n}" for s, n in declared(text) if "detail" not in s]
    want = ["a", "b", "c", "d", "e", "f", "g", "j", "name_of", "op::k", "l", "m"]
    assert got == ["tensorpar::" + w for w in want], got
    print("self-test: all as expected")


def main(root, show):
    headers = [p for p in sorted((root / "include").rglob("*")) if p.suffix in (".hpp", ".cuh")]
    where = collections.defaultdict(set)
    for p in headers:
        for space, name in declared(p.read_text()):
            if space.startswith("tensorpar") and "detail" not in space:
                where[space, name].add(p)
    words = collections.Counter()
    for p in headers:
        words.update(re.findall(r"\b[A-Za-z_]\w*\b", DIRECTIVE.sub(blank, TEXT.sub(blank, p.read_text()))))
    outside = set()
    for folder in ("examples", "bench", "docs", "README.md"):
        top = root / folder
        for p in [top] if top.is_file() else sorted(top.rglob("*")):
            if p.suffix in (".cpp", ".hpp", ".cu", ".md") and p.name not in ("results.md", "rules.md"):
                outside.update(re.findall(r"\b[A-Za-z_]\w*\b", p.read_text()))
    rooms = collections.Counter(space for space, _ in where)
    listed = root / "tests" / "layers" / "unused_names.txt"
    allowed = {line.split()[0] for line in listed.read_text().splitlines() if line.strip() and not line.startswith("#")} if listed.is_file() else set()
    unused = sorted({name for (_, name), at in where.items() if words[name] <= len(at) and name not in outside})
    faults = [f"{name}: declared in {', '.join(sorted(p.relative_to(root).as_posix() for (_, n), at in where.items() if n == name for p in at))}, used by nobody outside tests"
              for name in unused if name not in allowed]
    faults += [f"unused_names.txt: {name} is used, or is no public name" for name in sorted(allowed - set(unused))]
    if rooms["tensorpar"] > MOST:
        faults.append(f"{rooms['tensorpar']} names directly in tensorpar, more than {MOST}")
    if show:
        for space, n in sorted(rooms.items()):
            print(f"{n:5} in {space}")
    print("\n".join(faults))
    print(f"{rooms['tensorpar']} names directly in tensorpar, {sum(rooms.values())} in all, {len(unused)} unused, {len(allowed)} of them allowed; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(self_test())
    show = arguments[:1] == ["--list"]
    if len(arguments) != 1 + show:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(arguments[-1]), show))
