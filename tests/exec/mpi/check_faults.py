#!/usr/bin/env python3
"""Runs the program `faults` under mpirun, once per scenario: it must end by itself, in time, with the error that names what is wrong.

A process that dies by a signal is a case of its own: mpirun ends the others at once unless it is told to let them live.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

# arguments (FOLDER: a new one), exit status 0? (None: any), regular expressions for stdout and stderr together
SCENARIOS = [
    (["training", "none"], True, [r"step 5"]),
    (["collectives", "none"], True, []),
    (["collectives", "other call"], False,
     [r"rank 0: operation number 2 of group \{0,1,2\} does not fit: rank 0 calls all_reduce of 64 elements of 4 bytes, "
      r"rank 1 calls all_gather of 64"]),
    (["collectives", "other count"], False, [r"rank 0 calls all_reduce of 64 .*, rank 1 calls all_reduce of 63 "]),
    (["collectives", "other root"], False, [r"broadcast of 64 elements of 4 bytes from member 0, rank 1 calls .* from member 1"]),
    (["collectives", "other size of a message"], False, [r"rank 1 sends 20 bytes with tag 3, but rank 0 expects 24"]),
    (["collectives", "late"], False,
     [r"waits in all_reduce number 2 of group \{0,1,2\} for more than 2000 ms", r"; rank 1 does not answer"]),
    (["collectives", "no message"], False, [r"rank 0 waits in receive from rank 1 with tag 3"]),
    (["collectives", "no group"], False,
     [r"rank 2 waits in make_group number 0 of group \{1,2\}", r"rank [01] waits in all_reduce number 2"]),
    (["collectives", "circle"], False, [r"rank 1 waits in receive from rank 0 with tag 5", r"rank [02] waits in all_reduce number 2"]),
    (["training", "devices"], False, [r"MPI runs 3 processes for 4 devices .*mpirun -n 4"]),
    (["training", "bad batch"], False,
     [rf"rank {r}: input 'labels' holds 99 at \[3\] \(at batch, process \d\); valid: 0 to 11, for cross_entropy" for r in range(3)]),
    (["training", "bad batch on one"], False,
     [rf"rank {r}: input 'labels' holds 99 at \[3\] \(at batch, process 1\)" for r in range(3)]),
    (["training", "other steps"], False,
     [rf"rank {r}: processes 0 and 2 have step 3, process 1 has step 7 \(at step\)" for r in range(3)]),
    (["training", "other values"], False,
     [rf"rank {r}: processes 0 and 1 have parameter '[^']*' with hash \w+, process 2 has parameter" for r in range(3)]),
    (["training", "other checkpoints", "FOLDER"], False,
     [rf"rank {r}: processes 0 and 2 have step 3, process 1 has step 2 \(at load_checkpoint\)" for r in range(3)]),
    (["training", "nothing to load", "FOLDER"], False, [rf"rank {r}: .*\(at /dev/null/none, process 1\)" for r in range(3)]),
    (["training", "wrong store"], False,
     [r"rank [02]: an exception has ended the part of rank 1 in the run", r"rank 1: .*given 1 elements"]),
    (["training", "throws"], False, [r"rank [02]: an exception has ended the part of rank 1 in the run", r"rank 1: no more data"]),
    (["training", "caught, thrown on by one"], False,
     [r"rank [02]: an exception has ended the part of rank 1 in the run", r"rank 1: input 'labels' holds 99"]),
    (["training", "caught, thrown on by all"], False, [rf"rank {r}: input 'labels' holds 99" for r in range(3)]),
    (["training", "caught, left by one"], False, [r"rank [02]: an exception has ended the part of rank 1 in the run"]),
    (["training", "killed"], False, [r"rank 1 .*exited on signal 9|process rank 1 with PID"]),
    (["--enable-recovery", "training", "killed"], None,                    # Open MPI's; its exit status is 0 then
     [r"rank [02]: rank [02] waits in .* for more than 2000 ms.*; rank 1 does not answer", r"device [02] in task \d+", r"step 2"]),
]
LONGEST = 60      # seconds: a run that takes longer hangs


def run(mpirun, program, arguments, processes=3):
    options = [a for a in arguments if a.startswith("--")]
    words = [a for a in arguments if not a.startswith("--")]
    start = time.monotonic()
    child = subprocess.Popen(mpirun + options + ["-n", str(processes), program] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        said, _ = child.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said, _ = child.communicate()
        return None, said, LONGEST
    return child.returncode, said, time.monotonic() - start


def resume(mpirun, program):
    """One of four processes is killed; the checkpoint written before resumes with three, under their own plan, and ends where a run of one
    process ends that nothing happened to. The parameters are field elements, so equal means equal."""
    faults = []

    def ends(arguments, processes, fine, expected):
        status, said, _ = run(mpirun, program, arguments, processes)
        if status is None or (status == 0) != fine or not re.search(expected, said):
            faults.append(f"{' '.join(arguments)} with {processes} processes: exit status {status}, no '{expected}':\n{said}")
        return re.findall(r"parameters (\d+)", said)

    with tempfile.TemporaryDirectory() as folder:
        want = ends(["training", "none"], 1, True, "step 5")
        ends(["training", "killed", folder], 4, False, "step 2")
        got = ends(["training", "resumed", folder], 3, True, r"resumes \S+/step-3 after step 3\n(.|\n)*step 3\n")
    if want != got or len(want) != 1:
        faults.append(f"the parameters are {got}, undisturbed {want}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", help="one scenario, by its last word")
    parser.add_argument("mpirun", nargs="+", help="-- mpirun and its options")
    args = parser.parse_args()
    bad = 0
    for arguments, fine, expected in SCENARIOS:
        if args.only and arguments[-1] != args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            status, said, seconds = run(args.mpirun, args.program, [folder if a == "FOLDER" else a for a in arguments])
        faults = [f"nothing says '{e}'" for e in expected if not re.search(e, said)]
        if status is None:
            faults.append(f"hangs: killed after {LONGEST} s")
        elif fine is not None and (status == 0) != fine:
            faults.append(f"exit status {status}")
        print(f"{'BAD ' if faults else 'good'} {' '.join(arguments)} ({seconds:.1f} s)")
        if faults:
            bad += 1
            print("  " + "; ".join(faults) + "\n" + "\n".join("    | " + line for line in said.splitlines()[:40]))
    if not args.only or args.only == "resumed":
        faults = resume(args.mpirun, args.program)
        print(f"{'BAD ' if faults else 'good'} killed with 4 processes, resumed with 3")
        bad += bool(faults)
        for fault in faults:
            print("  " + fault)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
