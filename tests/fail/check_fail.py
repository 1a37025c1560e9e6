#!/usr/bin/env python3
"""One compile-fail test: FILE does not compile with -DTENSORPAR_FAIL, and then says the expected words at once.

The file's first lines are `// expect: REGEX`, one or more; each must match a line among the first ten of the diagnostic. For nvcc, lines
`// expect-nvcc: REGEX` take their place where there are any. With --sound, all files given compile without their faults, as one translation
unit: what they include is compiled once, and each keeps to a namespace of its own.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FIRST_LINES = 10


def compile_once(args, source, fail, folder):
    command = [args.compiler, "-std=c++20"] + args.flag
    for include in args.include:
        command.append("-I" + include)
    if fail:
        command.append("-DTENSORPAR_FAIL")
    if "nvcc" in pathlib.Path(args.compiler).name:
        command += ["-x", "cu", "-arch=sm_90", "-ptx", "-o", str(pathlib.Path(folder, "out.ptx"))]
    else:
        command += ["-fsyntax-only", "-fdiagnostics-color=never"]
    result = subprocess.run(command + [str(source)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace")
    return result.returncode, result.stdout


def check(args, source):
    """The fault found, or an empty string."""
    text = source.read_text()
    expected = re.findall(r"^// expect: *(\S.*?) *$", text, re.M)
    for_nvcc = re.findall(r"^// expect-nvcc: *(\S.*?) *$", text, re.M)
    if not expected:
        return "has no line `// expect: REGEX`"
    if not re.search(r"^\s*#\s*if.*\bTENSORPAR_FAIL\b", text, re.M):
        return "never asks for TENSORPAR_FAIL"
    if "nvcc" in pathlib.Path(args.compiler).name and for_nvcc:
        expected = for_nvcc
    with tempfile.TemporaryDirectory() as folder:
        status, diagnostic = compile_once(args, source, True, folder)
    if status == 0:
        return "compiles although it must not"
    first = diagnostic.splitlines()[:FIRST_LINES]
    for regex in expected:
        if not any(re.search(regex, line) for line in first):
            return f"nothing in the first {FIRST_LINES} lines matches '{regex}':\n" + "\n".join(first)
    return ""


def check_sound(args, sources):
    """The fault found, or an empty string."""
    includes = dict.fromkeys(line for s in sources for line in re.findall(r"^#include .*", s.read_text(), re.M))
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "sound.cpp")
        unit.write_text("\n".join(includes) + "\n" + "".join(f'namespace {s.stem} {{\n#include "{s.resolve()}"\n}}\n' for s in sources))
        status, diagnostic = compile_once(args, unit, False, folder)
    return "do not compile even without their faults:\n" + "\n".join(diagnostic.splitlines()[:20]) if status != 0 else ""


def self_test(args):
    head = "// expect: the_named_error\n"
    cases = {
        "good": (head + "#ifdef TENSORPAR_FAIL\nstatic_assert(sizeof(struct the_named_error));\n#endif\n", ""),
        "no fault": (head + "#ifdef TENSORPAR_FAIL\nint x;\n#endif\n", "compiles although"),
        "other words": (head + "#ifdef TENSORPAR_FAIL\nint x = ;\n#endif\n", "nothing in the first"),
        "words too late": (head + "#ifdef TENSORPAR_FAIL\n" + "int x = ;\n" * 20 + "static_assert(sizeof(struct the_named_error));\n#endif\n",
                           "nothing in the first"),
        "no expectation": ("#ifdef TENSORPAR_FAIL\nint x = ;\n#endif\n", "has no line"),
        "no switch": (head + "int x;\n", "never asks"),
    }
    wrong = 0
    for name, (text, expected) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "case.cpp")
            source.write_text(text)
            got = check(args, source)
        if bool(got) != bool(expected) or expected not in got:
            print(f"self-test '{name}': expected '{expected}', got '{got}'")
            wrong += 1
    with tempfile.TemporaryDirectory() as folder:
        good, broken = pathlib.Path(folder, "good.cpp"), pathlib.Path(folder, "broken.cpp")
        good.write_text(cases["good"][0])
        broken.write_text(head + "int x = ;\n#ifdef TENSORPAR_FAIL\n#endif\n")
        for sources, expected in [([good], ""), ([good, broken], "even without their faults")]:
            got = check_sound(args, sources)
            if bool(got) != bool(expected) or expected not in got:
                print(f"self-test of {len(sources)} sound files: expected '{expected}', got '{got}'")
                wrong += 1
    print("self-test:", f"{wrong} wrong" if wrong else f"{len(cases) + 2} cases as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--flag", action="append", default=[], help="one more argument for the compiler: --flag=-fsanitize=undefined")
    parser.add_argument("--sound", action="store_true", help="show that the files compile without their faults")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("file", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(self_test(arguments))
    if arguments.sound:
        fault = check_sound(arguments, arguments.file)
        print(f"{len(arguments.file)} files with {arguments.compiler}: {fault or 'compile without their faults'}")
    else:
        fault = check(arguments, arguments.file[0])
        print(f"{arguments.file[0]} with {arguments.compiler}: {fault or 'fails as expected'}")
    sys.exit(1 if fault else 0)
