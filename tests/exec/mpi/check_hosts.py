#!/usr/bin/env python3
"""Runs programs of comm::mpi on two hosts: network namespaces of this machine, joined by a bridge, each with a host name and an address of
its own, so that every message between them goes over TCP. Then the cable of one is pulled in the middle of a run.

Needs root, `ip` of iproute2 and Open MPI; says so and exits with 77 where one of them is missing.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

NET = "10.77.%d." % (os.getpid() % 250)
LONGEST = 120     # seconds: a run that takes longer hangs

# mpirun starts its helper on a host by `agent HOST COMMAND...`, as ssh does.
AGENT = """#!/bin/sh
host=$1; shift
name=tp-$(echo $host | tr . -)
exec ip netns exec $name unshare --uts sh -c "hostname $name; $*"
"""


def call(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class hosts:
    """Two hosts and the switch between them."""

    def __init__(self):
        self.bridge = "tpb%d" % os.getpid()
        self.addresses = [NET + "2", NET + "3"]

    def name(self, i):
        return "tp-" + self.addresses[i].replace(".", "-")

    def cable(self, i):
        return "tpc%d.%d" % (os.getpid(), i)

    def connect(self):
        try:
            call("ip", "link", "add", self.bridge, "type", "bridge")
            call("ip", "addr", "add", NET + "1/24", "dev", self.bridge)
            call("ip", "link", "set", self.bridge, "up")
            for i, address in enumerate(self.addresses):
                call("ip", "netns", "add", self.name(i))
                call("ip", "link", "add", self.cable(i), "type", "veth", "peer", "name", "eth0", "netns", self.name(i))
                call("ip", "link", "set", self.cable(i), "master", self.bridge, "up")
                call("ip", "-n", self.name(i), "addr", "add", address + "/24", "dev", "eth0")
                for device in ("eth0", "lo"):
                    call("ip", "-n", self.name(i), "link", "set", device, "up")
        except (OSError, subprocess.CalledProcessError):
            self.remove()
            raise

    def remove(self):
        for i in range(2):
            for pid in self.processes(i):
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", self.name(i)], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL)

    def processes(self, i):
        listed = ["ip", "netns", "pids", self.name(i)]
        return subprocess.run(listed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()

    def sent(self, i):
        """Bytes that host i has sent."""
        return int(pathlib.Path("/sys/class/net", self.cable(i), "statistics", "rx_bytes").read_text())


def start(mpirun, there, agent, program, words, out):
    place = ",".join(a + ":2" for a in there.addresses)
    command = mpirun + ["--host", place, "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self,vader"]
    for interface in ("btl_tcp_if_include", "oob_tcp_if_include"):
        command += ["--mca", interface, NET + "0/24"]
    return subprocess.Popen(command + ["-n", "4", program] + words, stdin=subprocess.DEVNULL, stdout=out,
                            stderr=subprocess.STDOUT, start_new_session=True)


def wait_for(what):
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return False


def name_of(pid):
    try:
        return pathlib.Path("/proc", pid, "cmdline").read_text(errors="replace").split("\0")[0]
    except OSError:       # it has ended meanwhile
        return ""


def run(args, there):
    with tempfile.TemporaryDirectory() as folder:
        agent = pathlib.Path(folder, "agent")
        agent.write_text(AGENT)
        agent.chmod(0o755)
        log = pathlib.Path(folder, "out")
        with log.open("wb") as out:
            child = start(args.mpirun, there, str(agent), "true", [], out)
            if not wait_for(lambda: child.poll() is not None) or child.poll() != 0:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                print("hosts: skipped, mpirun reaches no program in a namespace here:\n" + log.read_text(errors="replace"))
                return 77
        with log.open("wb") as out:
            child = start(args.mpirun, there, str(agent), args.tests, [], out)
            wait_for(lambda: child.poll() is not None)
        traffic = [there.sent(i) for i in range(2)]
        print(f"laws and training on two hosts: exit status {child.poll()}, sent {traffic} bytes")
        if child.poll() != 0 or min(traffic) < 1000000:
            print(log.read_text(errors="replace"))
            return 1

        def ours():     # processes of the program, as opposed to mpirun's helpers
            return [p for i in range(2) for p in there.processes(i) if pathlib.Path(args.faults).name in name_of(p)]

        with log.open("wb") as out:
            child = start(args.mpirun, there, str(agent), args.faults, ["training", "endless"], out)
            running = wait_for(lambda: b"step 20" in log.read_bytes())
            call("ip", "link", "set", there.cable(1), "down")
            began = time.monotonic()
            gone = wait_for(lambda: not ours())             # mpirun itself waits for its helper on the other host
            seconds = time.monotonic() - began
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        said = log.read_text(errors="replace")
        print(f"a cable pulled in the middle of training: all processes ended after {seconds:.1f} s")
        if not running or not gone or not re.search(r"for more than 2000 ms.*; rank [23] does not answer", said):
            print(said[-3000:])
            return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--faults", required=True)
    parser.add_argument("mpirun", nargs="+", help="-- mpirun and its options")
    args = parser.parse_args()
    version = subprocess.run([args.mpirun[0], "--version"], stdout=subprocess.PIPE, text=True).stdout
    if not re.search("Open MPI|OpenRTE", version):
        print("hosts: skipped, this mpirun is not Open MPI's")
        return 77
    there = hosts()
    try:
        there.connect()
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"hosts: skipped, no network namespaces can be made here: {e}")
        return 77
    try:
        return run(args, there)
    finally:
        there.remove()


if __name__ == "__main__":
    sys.exit(main())
