#!/bin/sh
# examples/check_output.sh PROGRAM [ARGUMENT...] - a standard output that is full or closed ends the program with an error, in words.
# 77: all went well, but there is no device that is always full.
check() {
  if [ "$2" -eq 0 ]; then echo "$1 standard output: the program says that all went well"; exit 1; fi
  if [ "$2" -gt 127 ]; then echo "$1 standard output: the program was not found, or a signal ended it (status $2)"; exit 1; fi
  case $3 in
    *"standard output cannot be written"*) ;;
    *) echo "$1 standard output: the program says: $3"; exit 1 ;;
  esac
}
"$@" >/dev/null || { echo "the program fails anyway"; exit 1; }
said=$("$@" 2>&1 >&-)
check closed $? "$said"
if [ ! -c /dev/full ] || [ ! -w /dev/full ]; then
  echo "skipped: there is no /dev/full that may be written; a closed standard output was tried, a full one was not"
  exit 77
fi
said=$("$@" 2>&1 >/dev/full)
check full $? "$said"
