#!/bin/sh
# Compares the hashes of all scenarios and of 2,000 random worlds with verify/hashes.csv, or writes them anew:
# the proof that a change of structure changed nothing that a program could notice.
# Usage: verify/hashes.sh [--write] [PROGRAM]
set -eu
cd "$(dirname "$0")/.."
write=
[ "${1-}" != --write ] || { write=yes; shift; }
if [ $# -eq 0 ]; then
    cargo build --release
    set -- target/release/rota
fi
rota=$1
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

echo world,events,deliveries,messages >"$fresh"
# One line of the table. A broken rule ends neither a run nor a sweep here.
line() {
    world=$1
    shift
    json=$("$@" --json) || [ $? -eq 4 ]
    field() { printf '%s' "$json" | sed -n "s/.*\"$1\": *\"\([0-9a-f]*\)\".*/\1/p"; }
    echo "$world,$(field event_hash),$(field delivery_hash),$(field message_hash)" >>"$fresh"
}
for file in scenarios/*.toml; do
    line "$(basename "$file" .toml)" "$rota" sim run "$file" --seed 1
done
for timers in product proven; do
    for from in 0 200 400 600 800; do
        line "$timers $from" "$rota" sim sweep --timers "$timers" --seeds "$from..$((from + 200))" --keep-going
    done
done
if [ -n "$write" ]; then
    cp "$fresh" verify/hashes.csv
elif ! diff verify/hashes.csv "$fresh"; then
    echo "hashes: these worlds run differently now (< before, > now)" >&2
    exit 4
fi
