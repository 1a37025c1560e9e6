#!/usr/bin/env python3
"""docs/vocabulary.md tells the truth: every type is defined in the header that it names, and no retired word is left.

Retired are the words in backquotes of the last table; one that ends with `_` is the beginning of a name. They may stand where another
language has the word (EXCEPTIONS) and on the page itself."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] != "--self-test" else ".").resolve()
PLACES = ("include", "docs", "examples", "README.md")
# what a word means to others: CUDA's grids, CSS's grids; rules' names, which stored plans hold; measured rows, which keep their names
EXCEPTIONS = {
    "grid": ["include/tensorpar/exec/cuda/*", "include/tensorpar/exec/cudnn/*", "include/tensorpar/report/page/style.hpp", "docs/results.md"],
    "spreads": ["include/tensorpar/rewrite/rules/*", "include/tensorpar/prover/find/families.hpp", "docs/rules.md", "docs/results.md", "examples/rules.cpp"],
    "spread": ["include/tensorpar/rewrite/rules/*", "docs/rules.md", "docs/results.md", "include/tensorpar/prover/find/sharding_rules.hpp"],
}


def words(page):
    """Retired word -> where it is said."""
    table = page[page.index("## Retired words"):]
    return sorted({w for line in table.splitlines() if line.startswith("| `") for w in re.findall(r"`(\w+)`", line.split("|")[1])}
                  | ({"most_", "least_"} if "`most_`" in table else set()))


def pattern(word):
    return re.compile(rf"(?<![\w-]){word}\w" if word.endswith("_") else rf"(?<![\w-]){word}(?![\w-])")


def retired(files, page):
    """Faults: 'file:line: the retired word ...'. `files`: name -> text."""
    faults = []
    for word in words(page):
        look = pattern(word)
        allowed = [pathlib.PurePath(e) for e in EXCEPTIONS.get(word, [])]
        for name, text in sorted(files.items()):
            if name == "docs/vocabulary.md" or any(pathlib.PurePath(name).match(str(e)) for e in allowed):
                continue
            faults += [f"{name}:{i}: the retired word '{word}'" for i, line in enumerate(text.splitlines(), 1) if look.search(line)]
    return faults


def defined(page, headers):
    """Faults: types that are not defined where the page says. `headers`: path below include/tensorpar/ -> text."""
    faults, rows = [], 0
    for line in page[:page.index("## Retired words")].splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) != 5 or not cells[3].startswith("`"):
            continue
        rows += 1
        name, where = cells[3].strip("`"), cells[4].strip("`")
        if where not in headers:
            faults.append(f"vocabulary: {where} does not exist")
        elif not re.search(rf"\b(struct|class|enum class|concept|using)\s+{name}\b|\b{name}\s*\(|\b{name}\w*\s*\(", headers[where]):
            faults.append(f"vocabulary: {where} does not define {name}")
    return faults + ([] if rows >= 40 else [f"vocabulary: {rows} rows, not 40 or more"])


def self_test():
    page = "| a | b | c | `layout` | `ir/layout.hpp` |\n" * 40 + "## Retired words\n| `spread`, `most_` in names | sharding |\n"
    good = {"ir/layout.hpp": "struct layout {};"}
    assert defined(page, good) == []
    assert defined(page, {"ir/layout.hpp": "struct other {};"})
    assert defined(page, {})
    assert any("rows" in f for f in defined(page[page.index("## Retired"):], good))
    assert retired({"include/x.hpp": "// how it is spread\n"}, page) == ["include/x.hpp:1: the retired word 'spread'"]
    assert retired({"include/x.hpp": "int most_axes;\n"}, page) and not retired({"include/x.hpp": "int at_most_once, widespread, utmost;\n"}, page)
    assert not retired({"docs/results.md": "spread\n", "docs/vocabulary.md": "spread\n"}, page)
    print("self-test: all as expected")


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    found = {}
    for place in PLACES:
        for p in [ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*")):
            if p.suffix in (".hpp", ".cuh", ".cpp", ".cu", ".md"):
                found[str(p.relative_to(ROOT))] = p.read_text()
    text = found["docs/vocabulary.md"]
    prefix = "include/tensorpar/"
    faults = retired(found, text) + defined(text, {n[len(prefix):]: t for n, t in found.items() if n.startswith(prefix)})
    print("\n".join(faults + [f"{len(found)} files, {len(words(text))} retired words; {len(faults)} faults"]))
    sys.exit(1 if faults else 0)
