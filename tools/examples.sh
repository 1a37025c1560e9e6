#!/bin/sh
# tools/examples.sh - the commands that docs/how-to/command-line.md quotes, in a folder that may be written; `tensorpar` is in PATH
set -e
# [quoted: plan]
tensorpar plan --model llama3_8b:layers=2 --cluster dgx_h100:2 --batch 128 --effort quick --out plan.json --html plan.html
# [end]
# [quoted: what if]
tensorpar plan --model llama3_8b:layers=2 --cluster dgx_h100:2 --batch 128 --effort quick \
  --what-if 'link:NDR*2,memory*0.5' --what-if 'gpus=32,precision=fp8'
# [end]
# [quoted: compare]
tensorpar compare --model mlp_unify --cluster summit:1 --batch 768 --effort quick
# [end]
# [quoted: files]
tensorpar show plan.json
tensorpar check plan.json
tensorpar simulate plan.json --trace trace.json
tensorpar plan --model llama3_8b:layers=2 --cluster dgx_h100:2 --batch 128 --micro-batches 2 --effort quick --out other.json
tensorpar diff plan.json other.json
# [end]
# [quoted: demo]
tensorpar run-demo --devices 2 --rounds 3
# [end]
# [quoted: rules]
tensorpar rules
tensorpar rules softmax
# [end]
