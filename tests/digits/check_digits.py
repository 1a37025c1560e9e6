#!/usr/bin/env python3
"""check_digits.py TRAIN_DIGITS FOLDER - runs the program as a user would and checks what it says and writes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
faults = []


def expect(condition, what):
    if not condition:
        faults.append(what)
        print("FAULT:", what)


def run(*args, ok=True):
    r = subprocess.run([program, *args], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect((r.returncode == 0) == ok, f"{' '.join(args)}: exit status {r.returncode}\n{r.stdout[-2000:]}\n{r.stderr[-2000:]}")
    return r


def events(r):
    return [json.loads(line) for line in r.stdout.splitlines()]


def check_result(e, devices):
    who = f"{e['model']} on {devices} devices"
    expect(e["devices"] == devices, who + ": devices")
    expect(e["accuracy"] >= 0.97, f"{who}: accuracy {e['accuracy']}")
    expect(0 <= e["max_rel_diff_double"] <= 1e-12, f"{who}: double differs by {e['max_rel_diff_double']}")
    expect(e["prime_field_equal"] is True, who + ": prime field")
    expect(e["predicted_peak_bytes"] == e["allocated_peak_bytes"] and len(e["allocated_peak_bytes"]) == devices, who + ": bytes")
    expect(e["predicted_step_s"] > 0 and e["measured_step_s"] > 0, who + ": step times")
    print(f"{who}: accuracy {e['accuracy']:.4f}, double {e['max_rel_diff_double']:.1e}, step {e['measured_step_s'] * 1e3:.2f} ms, "
          f"predicted {e['predicted_step_s'] * 1e3:.2f} ms")


def check_race(e, devices, names):
    """What was measured in turns: the plan, its rivals and one device, beside what was predicted."""
    all_ = e["contenders"]
    expect([c["name"] for c in all_] == names, f"{e['model']}: {[c['name'] for c in all_]} ran")
    expect(all_[-1]["devices"] == 1 and all(c["devices"] == devices for c in all_[:-1]), f"{e['model']}: devices of {all_}")
    for c in all_:
        expect(c["measured_step_s"] > 0 and c["predicted_step_s"] > 0, f"{e['model']}: times of {c}")
        expect(abs(c["relative"] * all_[0]["measured_step_s"] / c["measured_step_s"] - 1) < 1e-9, f"{e['model']}: relative time of {c}")
        expect(abs(c["loss"] - all_[0]["loss"]) <= 1e-2 * (1 + all_[0]["loss"]), f"{e['model']}: losses of {all_}")
    expect(e["differ"] <= 1e-3, f"{e['model']}: parameters differ by {e['differ']}")
    print(f"{e['model']}: " + ", ".join(f"{c['name']} {c['measured_step_s'] * 1e3:.2f} ms" for c in all_) + f", others used {e['others']}")


rivals = ["chosen plan", "data parallel", "tensor parallel", "one device"]
counts = [1, 2, 3, 4, 6, 8]
r = events(run("--devices", ",".join(map(str, counts)), "--model", "mlp,cnn", "--json", "--field-steps", "2", "--epochs", "12", "--rounds", "3",
               "--out", "all"))
races = [e for e in r if e["event"] == "race"]
expect(len(races) == 2 * len(counts), "one race per model and number of devices")
for e, n in zip(races, [n for n in counts for _ in range(2)]):
    check_race(e, n, rivals)
results = [e for e in r if e["event"] == "result"]
expect([(e["devices"], e["model"]) for e in results] == [(n, m) for n in counts for m in ("mlp", "cnn")], "one result per model and number of devices")
for e in results:
    check_result(e, e["devices"])
expect(r[-1]["event"] == "result", "the last line is a result")

# the network for which neither data nor tensor parallelism is best, on as many devices as there are cores
wide = events(run("--model", "wide", "--json", "--rounds", "3", "--out", "wide"))
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
devices = wide[-1]["devices"]
expect(1 <= devices <= cores, f"{devices} devices on {cores} cores")
check_result(wide[-1], devices)
check_race([e for e in wide if e["event"] == "race"][0], devices, rivals)
text = run("--model", "mlp", "--epochs", "1", "--rounds", "1", "--check-steps", "1", "--field-steps", "1").stdout
expect(("this machine is busy" in text) != ("the prediction " in text), "a busy machine is said so, and no prediction is judged there")

r = events(run("--cluster", "logical-2x2", "--json", "--field-steps", "2", "--model", "mlp", "--out", "slow"))
check_result(r[-1], 4)
check_race([e for e in r if e["event"] == "race"][0], 4, rivals)
h100 = events(run("--cluster", "dgx_h100:1", "--json", "--field-steps", "1", "--check-steps", "2", "--epochs", "1", "--model", "mlp"))
plans = [e for e in h100 if e["event"] == "plan"]
expect(plans and plans[0]["numbers"] == "f32: 4 bytes a number, H100-SXM5-80GB 67 TFLOP/s", f"a preset's rates are those of f32: {plans}")
for name in ("plan.json", "plan.html", "trace.json"):
    expect((folder / "slow" / name).stat().st_size > 500, f"slow/{name} is written")
page = (folder / "slow" / "plan.html").read_text()
expect(not re.search(r"""(src|href)\s*=\s*["']?https?:|@import|url\(\s*["']?https?:""", page), "plan.html needs no network")
trace = json.loads((folder / "slow" / "trace.json").read_text())
spans = [e for e in (trace["traceEvents"] if isinstance(trace, dict) else trace) if e.get("ph") == "X"]
expect(len({e["pid"] for e in spans}) == 2, "trace.json has the predicted and the measured timeline")

# start again from the stored plan: no search, the same plan, the same parameters
again = events(run("--plan", "slow/plan.json", "--json", "--field-steps", "1", "--check-steps", "3", "--epochs", "12", "--out", "again"))
check_race([e for e in again if e["event"] == "race"][0], 4, ["chosen plan", "one device"])
check_result({**again[-1], "accuracy": max(again[-1]["accuracy"], 0)}, 4)
first, second = (json.loads((folder / f / "plan.json").read_text()) for f in ("slow", "again"))
expect(first == second, "a plan that was read is written back the same")
expect(again[-1]["accuracy"] == r[-1]["accuracy"], "the same plan and seed give the same accuracy")

# bad input: one clear line, status 1, nothing written
text = (folder / "slow" / "plan.json").read_text()
(folder / "cut.json").write_text(text[: len(text) // 2])
(folder / "edited.json").write_text(re.sub(r'("micro_batches": )1', r"\g<1>2", text))
(folder / "short.csv").write_text("1,2,3\n")
for args, words in [
    (["--plan", "cut.json"], "cut.json"),
    (["--plan", "edited.json"], "edited.json"),
    (["--plan", "slow/plan.json", "--batch", "48"], "another model or batch"),
    (["--plan", "no-such.json"], "no-such.json"),
    (["--model", "cnn", "--plan", "slow/plan.json"], "for --model cnn"),
    (["--model", "mlp,cnn", "--plan", "slow/plan.json"], "--model mlp, or a plan of the model"),
    (["--plan", "slow/plan.json", "--devices", "4"], "--devices means nothing with --plan"),
    (["--plan", "slow/plan.json", "--cluster", "logical-2x2"], "--cluster means nothing with --plan"),
    (["--cluster", "logical-2x2", "--devices", "4"], "--devices means nothing with --cluster"),
    (["--cluster", "no-such-cluster"], "no-such-cluster"),
    (["--data", "short.csv"], "short.csv:1"),
    (["--data", "no-such.csv"], "no-such.csv"),
    (["--batch", "96", "--micro-batches", "7"], "micro-batches"),
    (["--batch", "1000000"], "--batch"),
    (["--model", "vgg"], "--model"),
]:
    r = run(*args, "--epochs", "1", "--out", "bad", ok=False)
    said = (r.stdout + r.stderr).strip()
    expect(words in said, f"{' '.join(args)}: says {said!r}, which does not name {words!r}")
    expect("terminate" not in said, f"{' '.join(args)}: crashes")

print(f"{'FAILED' if faults else 'passed'}: {len(faults)} faults")
sys.exit(1 if faults else 0)
