#!/bin/sh
# examples/check_refusal.sh WORDS PROGRAM [ARGUMENT...] - the program says these words and ends with an error that is no signal
words=$1
shift
said=$("$@" 2>&1 </dev/null)
status=$?
echo "$said"
if [ $status -eq 0 ]; then echo "refused in words, and yet the exit status is 0: $*"; exit 1; fi
if [ $status -gt 125 ]; then echo "not started, or ended by a signal (status $status): $*"; exit 1; fi
case $said in
  *"$words"*) ;;
  *) echo "the words '$words' are missing: $*"; exit 1 ;;
esac
