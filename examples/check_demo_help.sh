#!/bin/sh
# examples/check_demo_help.sh TRAIN_DIGITS - scripts/demo --help tells what the program's own help tells, at once and without building
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# blanks and line breaks aside: they differ between releases of CLI11
words() { tr -s ' \n' '  ' | sed 's/ $//'; }
"$1" --help >"$folder/said" || { echo "the program's --help fails"; exit 1; }
words <"$folder/said" >"$folder/program"
words <"$root/examples/train_digits.help" >"$folder/file"
cmp -s "$folder/program" "$folder/file" || { echo "examples/train_digits.help is not what train_digits --help says:"; cat "$folder/said"; exit 1; }
# whatever would install or build ends it
for tool in apt-get dpkg-query sudo cmake ninja g++; do
  printf '#!/bin/sh\necho %s >>"%s/called"\nexit 1\n' "$tool" "$folder" >"$folder/$tool" && chmod +x "$folder/$tool" || exit 1
done
for help in --help -h "--epochs 3 --help"; do
  said=$(PATH="$folder:$PATH" "$root/scripts/demo" $help) || { echo "scripts/demo $help fails"; exit 1; }
  [ ! -e "$folder/called" ] || { echo "scripts/demo $help calls $(cat "$folder/called")"; exit 1; }
  case $said in
    *"$(cat "$root/examples/train_digits.help")") ;;
    *) echo "scripts/demo $help says: $said"; exit 1 ;;
  esac
done
