#!/usr/bin/env python3
"""Checks the include graph and the form of include/tensorpar/ against floors.txt (beside this file).

Floors: an include runs to a room that is allowed, there is no cycle of headers or of rooms, third parties stand behind their one door, costly standard headers
stay where they may be, no .hpp includes a .cuh, <room>/detail/ is private to the room, no room includes an umbrella (tensorpar.hpp, plan.hpp, run.hpp); zoo/ is for
rooms that name it.
Files: headers, examples and benchmarks write through the one writer; floors.txt lists who else opens a file for writing, and why.
Form: first line `// tensorpar/<path> - <idea>`, `#pragma once`, line width, lines per header (longest, median), headers per room, no unfinished work.
Mirror: every header is included by a test of its own folder (tests/<folder>/ or tests/static/), directly or through headers of that folder.
"""
import collections
import fnmatch
import pathlib
import re
import statistics
import sys
import tempfile

STANDARD = set("""algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale
cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime
cuchar cwchar cwctype deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd
iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random
ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
string_view syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
vector version format""".split())
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|placeholder|not implemented|unimplemented)\b")
COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
WRITES = re.compile(r"\b(basic_ofstream|w?ofstream|basic_fstream|w?fstream|w?filebuf|fopen(?:64)?|freopen|fdopen|tmpfile|mkstemps?|mkostemps?"
                    r"|creat|O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|copy_file|(?:std::|::|fs::|filesystem::)rename(?:at2?)?(?=\s*\())\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


class floors:
    """What floors.txt says."""

    def __init__(self, text):
        self.allowed, self.doors, self.only, self.never = {}, {}, {}, []
        self.writers = set()
        self.umbrella, self.longest, self.median, self.width, self.flat = [], 400, 180, 140, 20
        for line in text.splitlines():
            line = line.split("#")[0].strip()
            if not line:
                continue
            word, *rest = line.split()
            if word == "door":
                self.doors[rest[0]] = rest[2]
            elif word == "only":
                for header in rest[rest.index(":") + 1:]:
                    self.only.setdefault(header, set()).update(rest[:rest.index(":")])
            elif word == "never":
                self.never.append((rest[0], rest[1], set(rest[3:])))              # PATTERN TARGET [but TARGET...]
            elif word == "writer":
                self.writers.add(rest[0])
            elif word == "umbrella":
                self.umbrella = rest
            elif word in ("longest", "median", "width", "flat"):
                setattr(self, word, int(rest[0]))
            elif rest and rest[0] == "->":
                own = set()
                for room in rest[1:]:
                    if room.rstrip("+") not in self.allowed:
                        raise SystemExit(f"floors.txt: {word} stands before {room.rstrip('+')}, which it may see")
                    own.add(room.rstrip("+"))
                    if room.endswith("+"):
                        own |= self.allowed[room.rstrip("+")]
                self.allowed[word] = own
            else:
                raise SystemExit(f"floors.txt: cannot read '{line}'")


def room_of(header):
    """The folder that a header stands in, below include/tensorpar/."""
    return header.rpartition("/")[0]


def circles(rooms):
    """Rooms that include one another, each circle once. `rooms`: room -> the rooms that its headers include."""
    found, done = [], set()

    def visit(room, path):
        for to in sorted(rooms.get(room, ())):
            if to in path:
                found.append(path[path.index(to):] + [to])
            elif to not in done:
                visit(to, path + [to])
        done.add(room)

    for room in sorted(rooms):
        if room not in done:
            visit(room, [room])
    return found


def check(root, rules):
    """All faults of the tree at `root`, as sentences."""
    faults = []
    base = root / "include" / "tensorpar"
    text = {str(p.relative_to(base)): p.read_text() for p in sorted(base.rglob("*")) if p.suffix in (".hpp", ".cuh")}
    for p in sorted(base.rglob("*")):
        if p.is_file() and p.suffix not in (".hpp", ".cuh"):
            faults.append(f"{p.relative_to(base)}: only .hpp and .cuh belong here")
    if not text:
        return ["there is no header at all"]
    ours, foreign = {}, {}
    for header, source in text.items():
        ours[header], foreign[header] = [], []
        if room_of(header) and room_of(header) not in rules.allowed:
            faults.append(f"{header}: floors.txt knows no room {room_of(header)}/")
        for quote, name in INCLUDE.findall(source):
            if name.startswith("tensorpar/"):
                target = name[len("tensorpar/"):]
            elif quote == '"':
                target = str((base / header).parent.joinpath(name).resolve().relative_to(base.resolve()))
            else:
                foreign[header].append(name)
                continue
            if target not in text:
                faults.append(f"{header}: includes {target}, which does not exist")
            else:
                ours[header].append(target)

        # form
        lines = source.splitlines()
        if not re.match(rf"// tensorpar/{re.escape(header)} - \S", lines[0] if lines else ""):
            faults.append(f"{header}: the first line is not '// tensorpar/{header} - <one idea>'")
        if "#pragma once" not in lines:
            faults.append(f"{header}: no #pragma once")
        if len(lines) > rules.longest and not re.search(r"^// generated by ", source, re.M):
            faults.append(f"{header}: {len(lines)} lines, more than {rules.longest}")
        for i, line in enumerate(lines, 1):
            if len(line) > rules.width:
                faults.append(f"{header}:{i}: {len(line)} columns, more than {rules.width}")
            if UNFINISHED.search(line):
                faults.append(f"{header}:{i}: unfinished work: {line.strip()}")
            if "\t" in line or line != line.rstrip():
                faults.append(f"{header}:{i}: tab or trailing blank")
            if "tag_invoke" in line:
                faults.append(f"{header}:{i}: tag_invoke")

    # floors
    rooms = {}
    for header, targets in ours.items():
        room = room_of(header)
        for target in targets:
            to = room_of(target)
            if to != room:
                rooms.setdefault(room, set()).add(to)
            if to == "" and room != "":
                faults.append(f"{header}: includes the umbrella {target}")
            elif to == "zoo" and room != "zoo" and "zoo" not in rules.allowed.get(room, ()):
                faults.append(f"{header}: includes {target}; nothing in include/ includes zoo/ unless it is listed")
            elif room and to != room and not to.endswith("/detail") and to not in rules.allowed.get(room, set()):
                faults.append(f"{header}: includes {target}; {room}/ may not see {to}/")
            if target.endswith(".cuh") and not header.endswith(".cuh"):
                faults.append(f"{header}: a .hpp includes {target}")
            if to.endswith("/detail") and room not in (to, room_of(to)):
                faults.append(f"{header}: includes {target}, which is private to {room_of(to)}/")
            for pattern, never, but in rules.never:
                if fnmatch.fnmatch(header, pattern) and header != never and target.startswith(never) and target not in but:
                    faults.append(f"{header}: must not include {target}")
    faults += ["circle of rooms: " + " -> ".join(c) for c in circles(rooms)]
    count = collections.Counter(map(room_of, text))
    faults += [f"{room}/: {n} headers, more than {rules.flat}" for room, n in sorted(count.items()) if n > rules.flat]

    # third parties and standard headers
    for header, names in foreign.items():
        folder = header.split("/")[0] if "/" in header else ""
        for name in names:
            door = [d for d in rules.doors if name.startswith(d)]
            if door:
                if rules.doors[max(door, key=len)] != header:
                    faults.append(f"{header}: includes <{name}>, whose only door is {rules.doors[max(door, key=len)]}")
            elif name in rules.only:
                if folder not in rules.only[name]:
                    faults.append(f"{header}: includes <{name}>, which only {', '.join(sorted(rules.only[name]))} may")
            elif name not in STANDARD:
                faults.append(f"{header}: includes <{name}>, which is neither standard nor behind a door of floors.txt")

    # files
    unused = set(rules.writers)
    for place in ("include/tensorpar", "examples", "bench"):
        for p in sorted((root / place).rglob("*")):
            if p.suffix not in (".hpp", ".cuh", ".cpp", ".cu"):
                continue
            name = str(p.relative_to(base)) if place == "include/tensorpar" else str(p.relative_to(root))
            bare = COMMENT.sub(lambda m: "\n" * m[0].count("\n"), p.read_text())
            for i, line in enumerate(bare.splitlines(), 1):
                found = None if line.lstrip().startswith("#") else WRITES.search(line)
                unused -= {name} if found else set()
                if found and name not in rules.writers:
                    faults.append(f"{name}:{i}: {found[1]} opens a file for writing; files are written by core/whole_file.hpp")
    if (base / "core" / "whole_file.hpp").exists():
        faults += [f"floors.txt: {name} writes no file by itself" for name in sorted(unused)]

    # cycles
    colour = {}

    def visit(header, path):
        colour[header] = 1
        for target in ours[header]:
            if colour.get(target) == 1:
                faults.append("include cycle: " + " -> ".join(path[path.index(target):] + [target] if target in path else [header, target]))
            elif target not in colour:
                visit(target, path + [target])
        colour[header] = 2

    for header in sorted(ours):
        if header not in colour:
            visit(header, [header])

    # the umbrella
    if "tensorpar.hpp" in ours:
        seen, todo = set(), ["tensorpar.hpp"]
        while todo:
            header = todo.pop()
            if header not in seen:
                seen.add(header)
                todo += ours[header]
        for header in sorted(seen):
            for name in foreign[header]:
                if name not in STANDARD and name not in rules.only and not any(name.startswith(u) for u in rules.umbrella):
                    faults.append(f"tensorpar.hpp reaches <{name}> through {header}")

    median = statistics.median(len(s.splitlines()) for s in text.values())
    if median > rules.median:
        faults.append(f"median length {median}, more than {rules.median}")

    # mirror
    tested = {}
    for source in (root / "tests").rglob("*.c*"):
        folder = source.relative_to(root / "tests").parts[0]
        for _, name in INCLUDE.findall(source.read_text()):
            tested.setdefault(name.removeprefix("tensorpar/"), set()).add(folder)
    for header in sorted(text):  # what a tested header includes of its own folder is tested with it
        folder = header.split("/")[0]
        if tested.get(header, set()) & {folder, "static"}:
            todo = [header]
            while todo:
                for part in ours[todo.pop()]:
                    if part.startswith(folder + "/") and folder not in tested.setdefault(part, set()):
                        tested[part].add(folder)
                        todo.append(part)
    for header in sorted(text):
        folder = header.split("/")[0]
        if "/" in header and not tested.get(header, set()) & {folder, "static"}:
            faults.append(f"{header}: no test in tests/{folder}/ or tests/static/ reaches it")
    return faults


def self_test():
    """Every rule must see its fault: a small good house, then the same with one thing wrong."""
    def header(path, *includes, body=""):
        return f"// tensorpar/{path} - an idea\n#pragma once\n" + "".join(f"#include <{i}>\n" for i in includes) + body
    good = {
        "include/tensorpar/tensorpar.hpp": header("tensorpar.hpp", "tensorpar/core/meta.hpp", "tensorpar/graph/order.hpp"),
        "include/tensorpar/core/meta.hpp": header("core/meta.hpp", "boost/hana.hpp"),
        "include/tensorpar/core/json.hpp": header("core/json.hpp", "nlohmann/json.hpp", "string"),
        "include/tensorpar/graph/order.hpp": header("graph/order.hpp", "vector", "tensorpar/core/meta.hpp"),
        "include/tensorpar/graph/digraph.hpp": header("graph/digraph.hpp"),
        "tests/core/core.test.cpp": "#include <tensorpar/core/meta.hpp>\n#include <tensorpar/core/json.hpp>\n",
        "tests/graph/graph.test.cpp": "#include <tensorpar/graph/order.hpp>\n#include <tensorpar/graph/digraph.hpp>\n",
    }
    order, core = "include/tensorpar/graph/order.hpp", "include/tensorpar/core/json.hpp"
    bad = {
        "may not see graph/": {core: header("core/json.hpp", "tensorpar/graph/order.hpp")},
        "include cycle": {"include/tensorpar/core/meta.hpp": header("core/meta.hpp", "tensorpar/core/json.hpp"),
                          core: header("core/json.hpp", "tensorpar/core/meta.hpp")},
        "which does not exist": {order: header("graph/order.hpp", "tensorpar/core/nothing.hpp")},
        "whose only door is core/json.hpp": {order: header("graph/order.hpp", "nlohmann/json.hpp")},
        "whose only door is exec/cpu/common/eigen_door.hpp": {order: header("graph/order.hpp", "Eigen/Dense")},
        "neither standard nor behind a door": {order: header("graph/order.hpp", "fmt/core.h")},
        "which only report, tool may": {order: header("graph/order.hpp", "iostream")},
        "which only core, exec, tool may": {order: header("graph/order.hpp", "unistd.h")},
        "must not include graph/digraph.hpp": {order: header("graph/order.hpp", "tensorpar/graph/digraph.hpp")},
        "check/ may not see program/": {
            "include/tensorpar/check/check.hpp": header("check/check.hpp", "tensorpar/program/core/program.hpp", "tensorpar/program/unroll.hpp"),
            "include/tensorpar/program/unroll.hpp": header("program/unroll.hpp"),
            "include/tensorpar/program/core/program.hpp": header("program/core/program.hpp")},
        "includes the umbrella": {order: header("graph/order.hpp", "tensorpar/tensorpar.hpp")},
        "a .hpp includes": {order: header("graph/order.hpp", "tensorpar/graph/x.cuh"),
                            "include/tensorpar/graph/x.cuh": header("graph/x.cuh")},
        "private to core/": {order: header("graph/order.hpp", "tensorpar/core/detail/x.hpp"),
                             "include/tensorpar/core/detail/x.hpp": header("core/detail/x.hpp")},
        "knows no room attic/": {"include/tensorpar/attic/x.hpp": header("attic/x.hpp")},
        "knows no room graph/attic/": {"include/tensorpar/graph/attic/x.hpp": header("graph/attic/x.hpp")},
        "graph/ may not see graph/sp/": {order: header("graph/order.hpp", "tensorpar/graph/sp/tree.hpp"),
                                         "include/tensorpar/graph/sp/tree.hpp": header("graph/sp/tree.hpp")},
        "circle of rooms: graph -> graph/sp -> graph": {
            order: header("graph/order.hpp", "tensorpar/graph/sp/tree.hpp"),
            "include/tensorpar/graph/sp/tree.hpp": header("graph/sp/tree.hpp", "tensorpar/graph/digraph.hpp")},
        "graph/: 23 headers": {f"include/tensorpar/graph/x{i}.hpp": header(f"graph/x{i}.hpp") for i in range(21)},
        "reaches <nlohmann/json.hpp>": {"include/tensorpar/tensorpar.hpp": header("tensorpar.hpp", "tensorpar/core/json.hpp")},
        "the first line is not": {order: "#pragma once\n"},
        "no #pragma once": {order: "// tensorpar/graph/order.hpp - an idea\n"},
        "351 lines": {order: header("graph/order.hpp", body="// x\n" * 349)},
        "111 columns": {order: header("graph/order.hpp", body="/" * 111 + "\n")},
        "unfinished work": {order: header("graph/order.hpp", body="// TO" "DO: all of it\n")},
        "trailing blank": {order: header("graph/order.hpp", body="// x \n")},
        "median length": {name: text + "// x\n" * 200 for name, text in good.items() if name.endswith(".hpp")},
        "no test in tests/graph/": {"tests/graph/graph.test.cpp": "#include <tensorpar/graph/digraph.hpp>\n"},
        "ofstream opens a file for writing": {order: header("graph/order.hpp", body='std::ofstream f("x");\n')},
        "fopen opens a file for writing": {"examples/x.cpp": 'FILE* f = std::fopen("x", "w");\n'},
        "O_CREAT opens a file for writing": {"bench/x.cpp": 'int f = open("x", O_CREAT | 1);\n'},
        "rename opens a file for writing": {order: header("graph/order.hpp", body='std::filesystem::rename("a", "b");\n')},
        "only .hpp and .cuh belong here": {"include/tensorpar/core/x.cpp": "\n"},
    }
    rules = floors(pathlib.Path(__file__).with_name("floors.txt").read_text())
    wrong = 0
    for expected, changes in [("", {}), *bad.items()]:
        with tempfile.TemporaryDirectory() as folder:
            for path, content in {**good, **changes}.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            faults = check(pathlib.Path(folder), rules)
        if bool(faults) != bool(expected) or (expected and not any(expected in f for f in faults)):
            print(f"self-test: expected '{expected}', got {faults}")
            wrong += 1
    print("self-test:", f"{wrong} wrong" if wrong else f"{len(bad) + 1} houses as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: check_layers.py SOURCE_FOLDER | --self-test")
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    house = pathlib.Path(sys.argv[1]).resolve()
    found = check(house, floors(pathlib.Path(__file__).with_name("floors.txt").read_text()))
    print("\n".join(found))
    headers = [p for p in (house / "include" / "tensorpar").rglob("*") if p.suffix in (".hpp", ".cuh")]
    lengths = sorted(len(p.read_text().splitlines()) for p in headers)
    print(f"{len(headers)} headers, median {statistics.median(lengths)} lines, longest {lengths[-1]}; {len(found)} faults")
    sys.exit(1 if found else 0)
