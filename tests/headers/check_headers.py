#!/usr/bin/env python3
"""Compiles every header of include/ alone, warnings as errors, and all of them together behind hostile macros.

g++ takes every .hpp as the first include of a translation unit: its own, or that of a header which begins with it. g++ and clang++ take
all of them in one unit, in order and backwards, after macros such as `I`, `small` and `B0` were defined, as C headers, POSIX and Windows do.
Standard and third-party headers come before those macros. (That each stands alone is g++'s to show; clang's warnings need each header once.)
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

# What CUDA's toolkit does not bring: its header, as a compiler names it when it is not there.
OPTIONAL = re.compile(r"fatal error: (nccl|cudnn)\.h: No such file")
# Object-like macros that C, POSIX, X11, newlib or Windows headers are known to define.
HOSTILE = """I small B0 B1 B50 near far interface linux unix ECHO ERROR IN OUT OPTIONAL CONST VOID TRUE FALSE DELETE DIFFERENCE
None Bool Status Success Always Complex True False PI M_PI OK ERR LOG CHECK INFO DEBUG TEST REQUIRE MIN MAX ABS major minor
_B _C _L _N _P _S _U _X""".split()
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

    def alone(self, header):
        return self.compile(header, f"#include <{header}>\n" * 2)

    def begun_with(self, headers):
        """Headers that stand before all else in another one: the compiler sees them alone when it takes that one."""
        text = lambda h: re.sub(r"//[^\n]*|/\*.*?\*/", "", (self.source / "include" / h).read_text(), flags=re.S)
        first = [re.match(r"\s*#\s*pragma\s+once\s*#\s*include\s*<([^>]+)>", text(h)) for h in headers]
        return {m[1] for m in first if m}

    def hostile(self, headers, unit="hostile_macros"):
        """One unit: everything foreign first, then the macros, then all of ours. Each macro names itself in the error it causes."""
        foreign = sorted({line for h in headers for line in re.findall(r"^\s*#\s*include\s*<(?!tensorpar/)([^>]+)>",
                                                                      (self.source / "include" / h).read_text(), re.M)})
        text = "".join(f"#include <{h}>\n" for h in foreign)
        text += "".join(f"#undef {m}\n#define {m} hostile_macro_{m} @ {m}\n" for m in dict.fromkeys(HOSTILE))
        text += "".join(f"#include <{h}>\n" for h in headers)
        return self.compile(unit, text, WARNINGS + ["-Wno-keyword-macro"] if "clang" in self.tag else WARNINGS)

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
                jobs.append(("all headers behind hostile macros", pool.submit(self.hostile, headers)))
                jobs.append(("all headers backwards", pool.submit(self.hostile, headers[::-1], "backwards")))
                begun = self.begun_with(headers)
                for h in [h for h in headers if h not in begun] if "clang" not in self.tag else []:
                    jobs.append((h, pool.submit(self.alone, h)))
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
    faults = {
        "good": ("#pragma once\n#include <vector>\ninline std::vector<int> f() { return {1}; }\n", 0),
        "missing_include": ("#pragma once\ninline std::vector<int> f() { return {1}; }\n", 1),
        "warning": ("#pragma once\ninline int f(long x) { return x; }\n", 1),
        "macro": ("#pragma once\ntemplate <class T, int B0> struct s {};\n", 1),
        "no_pragma_once": ("inline int f() { return 1; }\n", 1),
    }
    wrong = 0
    for name, (text, expected) in faults.items():
        with tempfile.TemporaryDirectory() as root:
            header = pathlib.Path(root, "include", "tensorpar", "x.hpp")
            header.parent.mkdir(parents=True)
            header.write_text(text)
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
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    sys.exit(self_test(arguments) if arguments.self_test else checker(arguments).run())
