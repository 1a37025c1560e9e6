#!/bin/sh
# tools/check_terminal.sh PROGRAM [ARGUMENT...] - on a terminal the search tells of itself in one line that it wipes, and with --quiet not
# at all. 77: there is no `script` (util-linux) that would play the terminal.
if ! command -v script >/dev/null || ! script --version 2>/dev/null | grep -q util-linux; then
  echo "skipped: there is no script of util-linux, so no terminal to print to"
  exit 77
fi
run() { script --quiet --return --command "$1" /dev/null </dev/null; }
command=""
for word; do command="$command '$word'"; done
wipe=$(printf '\r\033[K')
said=$(run "$command") || { echo "the program fails on a terminal: $said"; exit 1; }
case $said in
  *"$wipe"tensorpar:*"kinds of plans left"*"best so far"*"$wipe"*) ;;
  *) echo "no line of progress, or it is not wiped: $said"; exit 1 ;;
esac
said=$(run "$command --quiet") || { echo "the program fails with --quiet: $said"; exit 1; }
case $said in
  *"$wipe"*) echo "progress in spite of --quiet: $said"; exit 1 ;;
esac
said=$(eval "$command" 2>&1 >/dev/null)
[ -z "$said" ] || { echo "a short search prints to a file: $said"; exit 1; }
