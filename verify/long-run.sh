#!/bin/sh
# Goes on with the simulator's campaigns where the ledger ends, for so many minutes, and adds a line for each.
# Three quarters of the time go to the timers whose bounds are proven. Channels across segments, whose seeds have
# a ledger of their own, take a sixth of the time behind that.
# Usage: verify/long-run.sh MINUTES
set -eu
minutes=${1:?usage: verify/long-run.sh MINUTES}
cd "$(dirname "$0")/.."
cargo build --profile fast
label=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain --untracked-files=no -- crates)" ] || label="$label-changed"
proven=$(((minutes * 3 + 3) / 4))
target/fast/rota sim sweep --timers proven --minutes "$proven" --ledger verify/ledger.csv --label "$label"
[ "$minutes" -le "$proven" ] ||
    target/fast/rota sim sweep --minutes $((minutes - proven)) --ledger verify/ledger.csv --label "$label"
across=$(((minutes + 11) / 12))
for timers in proven product; do
    target/fast/rota sim sweep --timers $timers --minutes "$across" --ledger verify/across.csv --label "$label"
done
