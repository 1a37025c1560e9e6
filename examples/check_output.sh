#!/bin/sh
# examples/check_output.sh PROGRAM [ARGUMENT...] - a standard output that is full or closed ends the program with an error, in words
check() {
  if [ "$2" -eq 0 ]; then echo "$1 standard output: the program says that all went well"; exit 1; fi
  case $3 in
    *"standard output cannot be written"*) ;;
    *) echo "$1 standard output: the program says: $3"; exit 1 ;;
  esac
}
said=$("$@" 2>&1 >/dev/full)
check full $? "$said"
said=$("$@" 2>&1 >&-)
check closed $? "$said"
"$@" >/dev/null || { echo "the program fails anyway"; exit 1; }
