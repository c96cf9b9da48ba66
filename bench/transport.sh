#!/usr/bin/env bash
# Measures circuits beside all other transports: builds Rota and bench/peers for release, and runs
# `rota bench transport` on the bridge of 1 Gbit/s and on a hub at a rate that it carries, with each loss and
# each round trip: over half an hour besides the build. Words behind it go to the command: `--hub-rate 0bit` measures
# the bridge alone in a tenth of that. The table, what was said meanwhile and the load stand in target/transport.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=${CARGO_TARGET_DIR:-$PWD/target}
out=$targets/transport
mkdir -p "$out"

cargo build --release --locked
CARGO_TARGET_DIR=$targets/peers cargo build --release --locked --manifest-path bench/peers/Cargo.toml

load() { echo "load $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) processors, Linux $(uname -r), $(date -u +%FT%TZ)"; }
load | tee "$out/load.txt"
hub=(--hub-rate 50mbit)
[[ " $* " == *" --hub-rate"* ]] && hub=()
"$targets/release/rota" bench transport --peers "$targets/peers/release/rota-bench-peers" "${hub[@]}" "$@" \
    2> >(tee "$out/said.txt" >&2) | tee "$out/table.txt"
load | tee -a "$out/load.txt"
