#!/usr/bin/env python3
"""Compiles every header of include/ alone, warnings as errors, and all of them together behind hostile macros.

g++ takes every .hpp where nothing stands before it that it could use without including it. Headers share a translation unit where one needs
no name of those before it that it does not include itself, and includes the standard headers that they include. clang++ takes all of them
in one unit, in order and backwards, after macros such as `I`, `small` and `B0` were defined, as C headers, POSIX and Windows do. Standard
and third-party headers come before those macros. (What a macro does is the same for every compiler: g++ does it only where there is no
clang++. clang's warnings need each header once.)
nvcc takes every .cuh and the umbrella; those that need a library of NVIDIA's which is not installed are named and left out. There is no
list of exceptions. Exit status 0: all of them compile.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "layers"))
import check_names

# What CUDA's toolkit does not bring: its header, as a compiler names it when it is not there.
OPTIONAL = re.compile(r"fatal error: (nccl|cudnn)\.h: No such file")
# Object-like macros that C, POSIX, X11, newlib or Windows headers are known to define.
HOSTILE = """I small B0 B1 B50 near far interface linux unix ECHO ERROR IN OUT OPTIONAL CONST VOID TRUE FALSE DELETE DIFFERENCE
None Bool Status Success Always Complex True False PI M_PI OK ERR LOG CHECK INFO DEBUG TEST REQUIRE MIN MAX ABS major minor
_B _C _L _N _P _S _U _X""".split()
# The same before the headers of third parties that come through our doors, as programs have them that include other things first; and what
# must be refused in one error, since it hides functions of ours.
BEFORE = {
    "complex.h": "#include <complex.h>\n",
    "X11": "#define X11 1\n" + "".join(f"#define {m} {v}\n" for m, v in dict(
        None_="0L", Bool="int", Status="int", True_="1", False_="0", Always="2", Success="0", Complex="1", Above="0", Below="1", KeyPress="2",
        FocusIn="9", FocusOut="10", Unsorted="0", Convex="2", GrayScale="1", Expose="12", CursorShape="0", NoSymbol="0L").items()).replace("_ ", " "),
    "Windows": "#define min(a, b) ((a) < (b) ? (a) : (b))\n#define max(a, b) ((a) > (b) ? (a) : (b))\n"
               "#define small char\n#define near\n#define far\n#define interface struct\n#define ERROR 0\n#define IN\n#define OUT\n",
    "macOS, check": "#define check(assertion) ((void)(assertion))\n",
    "macOS, require": "#define require(assertion, label) ((void)(assertion))\n",
}
DOORS = ["tensorpar/tensorpar.hpp", "tensorpar/exec/cpu/common/eigen_door.hpp", "tensorpar/core/json.hpp", "tensorpar/check/check.hpp"]
REFUSED = "include tensorpar first"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror"]


class checker:
    def __init__(self, args):
        self.args = args
        self.source = pathlib.Path(args.source)
        self.work = pathlib.Path(args.work)
        self.nvcc = "nvcc" in pathlib.Path(args.compiler).name
        self.tag = pathlib.Path(args.compiler).name.replace("+", "x")
        self.environment = dict(os.environ, CCACHE_BASEDIR=str(self.source), CCACHE_NOHASHDIR="1")

    def headers(self, suffix):
        root = self.source / "include"
        return sorted(str(p.relative_to(root)) for p in root.rglob("*" + suffix))

    def compile(self, name, text, warnings=WARNINGS):
        """Compiles one translation unit; returns the diagnostic, empty when it is fine."""
        folder = self.work / self.tag
        unit = folder / (re.sub(r"[^A-Za-z0-9]", "_", name) + (".cu" if self.nvcc else ".cpp"))
        unit.parent.mkdir(parents=True, exist_ok=True)
        if not unit.exists() or unit.read_text() != text:
            unit.write_text(text)
        command = [self.args.compiler, "-std=c++20", "-I" + str(self.source / "include")]
        for folder in self.args.system_include:
            command += ["-isystem", folder]
        if self.nvcc:
            command += ["-arch=sm_90", "-c", "--expt-relaxed-constexpr", "-Werror=all-warnings"]   # -ptx would leave out what the host compiles
        else:
            command += warnings + ["-O0", "-c"]
            if "clang" not in self.tag:
                command.append("--param=ggc-min-heapsize=1000000")      # most are done before memory need be collected
            if self.args.ccache:
                command = [self.args.ccache] + command
        result = subprocess.run(command + [str(unit), "-o", str(unit.with_suffix(".o"))], env=self.environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, errors="replace")
        if result.returncode != 0:
            return (result.stdout + result.stderr) or "the compiler failed without a word"
        return ""

    def alone(self, *headers):
        return self.compile(headers[-1], "".join(f"#include <{h}>\n" for h in headers * 2))

    def rows(self, headers):
        """The headers in rows. Before a header stands what it includes, and headers that give it nothing: it has the standard headers that they
        have, says none of the names that they declare, and they have neither operators nor specialisations, which are used without a name."""
        own, standard, words, names, silent = {}, {}, {}, {}, {}

        def read(header):
            if header in own:
                return
            text = (self.source / "include" / header).read_text()
            certain = re.split(r"^\s*#\s*if", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S), flags=re.M)[0]   # not what is included perhaps
            direct = set(re.findall(r"^\s*#\s*include\s*<([^>]+)>", certain, re.M))
            own[header], standard[header] = direct & all_of_them, direct - all_of_them
            for h in sorted(direct & all_of_them):
                read(h)
                own[header] |= own[h]
                standard[header] |= standard[h]
            code = check_names.DIRECTIVE.sub("", check_names.TEXT.sub("", text))
            words[header] = set(re.findall(r"\w+", code))
            names[header] = {n for _, n in check_names.declared(text)} | set(re.findall(r"^\s*#\s*define (\w+)", text, re.M))
            silent[header] = bool(re.search(r"^(?!\s).*(\boperator\b|template <>)", code, re.M))

        all_of_them = set(headers)
        for h in headers:
            read(h)
        rows = []                                                                       # (headers, what they see, standard headers)
        for header in sorted(headers, key=lambda h: (len(own[h]), h)):
            fitting = [row for row in rows if row[2] <= standard[header]
                       and not any(silent[h] or names[h] & words[header] for h in row[1] - own[header])]
            row = max(fitting, key=lambda row: len(row[1])) if fitting else ([], set(), set())
            if not fitting:
                rows.append(row)
            row[0].append(header)
            row[1].update(own[header], [header])
            row[2].update(standard[header])
        return [row[0] for row in sorted(rows, key=lambda row: -len(row[1]))]

    def hostile(self, headers, unit="hostile_macros"):
        """One unit: everything foreign first, then the macros, then all of ours. Each macro names itself in the error it causes."""
        foreign = sorted({line for h in headers for line in re.findall(r"^\s*#\s*include\s*<(?!tensorpar/)([^>]+)>",
                                                                      (self.source / "include" / h).read_text(), re.M)})
        text = "".join(f"#include <{h}>\n" for h in foreign)
        text += "".join(f"#undef {m}\n#define {m} hostile_macro_{m} @ {m}\n" for m in dict.fromkeys(HOSTILE))
        text += "".join(f"#include <{h}>\n" for h in headers)
        return self.compile(unit, text, WARNINGS + ["-Wno-keyword-macro"] if "clang" in self.tag else WARNINGS)

    def behind(self, what):
        """The doors behind macros that other headers define: they work, or say in one error what to do; macros are there afterwards."""
        text = BEFORE[what] + "".join(f"#include <{h}>\n" for h in DOORS)
        names = re.findall(r"^#define (\w+)", BEFORE[what], re.M) + (["I"] if what == "complex.h" else [])
        if not what.startswith("Windows"):                                 # the standard library takes min and max away
            text += "".join(f"#ifndef {m}\n#error \"{m} is gone\"\n#endif\n" for m in names)
        text += "int main() {}\n"
        found = self.compile("behind_" + what, text, ["-Wall", "-Wextra", "-Werror", "-std=gnu++20", "-fsyntax-only"])
        if not what.startswith("macOS"):
            return found
        errors = [line for line in found.splitlines() if "error:" in line and "is gone" not in line]
        return "" if len(errors) == 1 and REFUSED in errors[0] else found or f"{what} is not refused"

    def run(self):
        jobs = []
        with concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
            if self.nvcc:
                umbrella = [h for h in ["tensorpar/tensorpar.hpp"] if (self.source / "include" / h).exists()]
                if not umbrella + self.headers(".cuh"):
                    print("skipped: there is neither an umbrella nor a .cuh for nvcc")
                    return 77
                for h in umbrella + self.headers(".cuh"):
                    jobs.append((h, pool.submit(self.alone, h)))
            else:
                headers = self.headers(".hpp")
                if not headers:
                    print("there is no header at all")
                    return 1
                if not self.args.alone_only:
                    jobs.append(("all headers behind hostile macros", pool.submit(self.hostile, headers)))
                    for what in BEFORE:
                        if all((self.source / "include" / h).exists() for h in DOORS):
                            jobs.append(("the doors behind " + what, pool.submit(self.behind, what)))
                    jobs.append(("all headers backwards", pool.submit(self.hostile, headers[::-1], "backwards")))
                for row in self.rows(headers) if "clang" not in self.tag else []:
                    jobs.append((row[-1] + (" and what stands before it" if row[1:] else ""), pool.submit(self.alone, *row)))
            failed = [(name, job.result()) for name, job in jobs if job.result()]
        if self.nvcc:
            for name, library in [(n, OPTIONAL.search(d)) for n, d in failed]:
                if library:
                    print(f"{name} is left out: there is no {library[1]}.h")
            failed = [(n, d) for n, d in failed if not OPTIONAL.search(d)]
        for name, diagnostic in failed:
            print(f"---- {name} does not compile with {self.args.compiler}")
            print("\n".join(diagnostic.splitlines()[:15]))
        print(f"{self.args.compiler}: {len(jobs) - len(failed)} of {len(jobs)} translation units compile")
        return 1 if failed else 0


def self_test(args):
    """The check itself must see what it is there for: a missing include, a warning, a name that a macro hits."""
    vector = "inline std::vector<int> %s() { return {1}; }\n"
    faults = {
        "good": ({"x": "#pragma once\n#include <vector>\n" + vector % "f"}, 0),
        "missing_include": ({"x": "#pragma once\n" + vector % "f"}, 1),
        "included_by_another": ({"x": "#pragma once\n#include <tensorpar/y.hpp>\n#include <tensorpar/z.hpp>\n",
                                 "y": "#pragma once\n#include <vector>\n" + vector % "f", "z": "#pragma once\n" + vector % "g"}, 1),
        "included_perhaps": ({"x": "#pragma once\n#if 0\n#include <tensorpar/y.hpp>\n#endif\n" + vector % "f",
                              "y": "#pragma once\n#include <vector>\n"}, 1),
        "beside_another": ({"x": "#pragma once\n#include <vector>\n" + vector % "f",
                            "y": "#pragma once\n#include <vector>\ninline std::vector<int> g() { return f(); }\n"}, 1),
        "operator_of_another": ({"x": "#pragma once\n#include <tensorpar/z.hpp>\ninline bool operator==(s, s) { return true; }\n",
                                 "y": "#pragma once\n#include <tensorpar/z.hpp>\ninline bool f(s a) { return a == a; }\n",
                                 "z": "#pragma once\nstruct s {};\n"}, 1),
        "warning": ({"x": "#pragma once\ninline int f(long x) { return x; }\n"}, 1),
        "macro": ({"x": "#pragma once\ntemplate <class T, int B0> struct s {};\n"}, 1),
        "no_pragma_once": ({"x": "inline int f() { return 1; }\n"}, 1),
        "no_pragma_once_below": ({"x": "#pragma once\n#include <tensorpar/y.hpp>\n", "y": "inline int f() { return 1; }\n"}, 1),
    }
    wrong = 0
    for name, (headers, expected) in faults.items():
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root, "include", "tensorpar")
            folder.mkdir(parents=True)
            for header, text in headers.items():
                (folder / (header + ".hpp")).write_text(text)
            got = checker(argparse.Namespace(**{**vars(args), "source": root, "work": root + "/work", "ccache": ""})).run()
            if got != expected:
                print(f"self-test: '{name}' gives {got}, expected {expected}")
                wrong += 1
    print("self-test:", "failed" if wrong else f"{len(faults)} cases as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--ccache", default="")
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--alone-only", action="store_true", help="leave what macros do to another compiler")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    sys.exit(self_test(arguments) if arguments.self_test else checker(arguments).run())
