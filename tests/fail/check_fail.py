#!/usr/bin/env python3
"""One compile-fail test: FILE compiles as it is, does not with -DTENSORPAR_FAIL, and then says the expected words at once.

The file's first lines are `// expect: REGEX`, one or more; each must match a line among the first ten of the diagnostic. For nvcc, lines
`// expect-nvcc: REGEX` take their place where there are any. With --only-fault the file is compiled with its fault alone: that it is sound
without it need be shown by one compiler.
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
        if not args.only_fault:
            status, diagnostic = compile_once(args, source, False, folder)
            if status != 0:
                return "does not compile even without its fault:\n" + "\n".join(diagnostic.splitlines()[:20])
        status, diagnostic = compile_once(args, source, True, folder)
    if status == 0:
        return "compiles although it must not"
    first = diagnostic.splitlines()[:FIRST_LINES]
    for regex in expected:
        if not any(re.search(regex, line) for line in first):
            return f"nothing in the first {FIRST_LINES} lines matches '{regex}':\n" + "\n".join(first)
    return ""


def self_test(args):
    head = "// expect: the_named_error\n"
    cases = {
        "good": (head + "#ifdef TENSORPAR_FAIL\nstatic_assert(sizeof(struct the_named_error));\n#endif\n", ""),
        "broken fixture": (head + "int x = ;\n#ifdef TENSORPAR_FAIL\n#endif\n", "even without its fault"),
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
    print("self-test:", f"{wrong} wrong" if wrong else f"{len(cases)} cases as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--flag", action="append", default=[], help="one more argument for the compiler: --flag=-fsanitize=undefined")
    parser.add_argument("--only-fault", action="store_true", help="do not show that the file compiles without its fault")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(self_test(arguments))
    fault = check(arguments, pathlib.Path(arguments.file))
    print(f"{arguments.file} with {arguments.compiler}: {fault or 'fails as expected'}")
    sys.exit(1 if fault else 0)
