#!/bin/sh
# examples/check_scripts.sh - the checks beside this file fail where they must
here=$(dirname "$0")
fails() { if "$here/$1" "$2" sh -c "$3" >/dev/null 2>&1; then echo "$1 is content with: $3"; exit 1; fi; }
passes() { "$here/$1" "$2" sh -c "$3" >/dev/null 2>&1 || { echo "$1 is not content with: $3"; exit 1; }; }
passes check_refusal.sh "no such flag" 'echo "error: no such flag" >&2; exit 1'
passes check_refusal.sh "a.c" 'echo "a.c"; exit 106'
fails check_refusal.sh "a.c" 'echo "abc"; exit 1'
fails check_refusal.sh "no such flag" 'echo "no such flag"'
fails check_refusal.sh "no such flag" 'exit 1'
fails check_refusal.sh "no such flag" 'echo "no such flag"; kill -SEGV $$'
fails check_refusal.sh "no such flag" 'echo "no such flag"; exit 127'
