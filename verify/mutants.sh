#!/usr/bin/env bash
# verify/mutants.sh [CRATE…]: plants a seeded sample of small bugs, one at a time, in a copy of the last commit and
# runs the tests of the bug's own crate. mutants.md says what was found.
# SEED (15) and SAMPLE (30 mutants a crate) choose the sample; DIR (target/mutants) takes the copy and the results.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-mutants > /dev/null || {
  echo "mutants.sh: cargo-mutants is missing; this installs it: cargo install cargo-mutants --locked" >&2
  exit 2
}
SEED=${SEED:-15} SAMPLE=${SAMPLE:-30} DIR=$(realpath -m "${DIR:-target/mutants}")
[ $# -gt 0 ] || set -- units wire admission shm proto
rm -rf "$DIR/tree/crates" && mkdir -p "$DIR/tree"
git archive HEAD | tar x -C "$DIR/tree"
# The copy is built anew for each mutant: less to optimize, to write and to link.
sed -i -e '/^opt-level = 1/d' -e '/^rota-admission\.opt-level/d' "$DIR/tree/Cargo.toml"
export CARGO_PROFILE_DEV_DEBUG=0
for crate in "$@"; do
  cd "$DIR/tree"
  cargo mutants --list -p "rota-$crate" --json > "$DIR/$crate.all.json"
  # Without code that no test of the crate runs: entries for fuzzers, what a feature alone compiles.
  python3 - "$DIR/$crate.all.json" "$SEED" "$SAMPLE" > "$DIR/$crate.sample" <<'PYTHON'
import json, random, re, sys
path, seed, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def counts(mutant):
    of = (mutant["function"] or {}).get("function_name", "")
    named = of.split("::")[-1] in {"visit_patience", "words", "visit"}
    return not re.search(r"/(fuzz|model|planted|hostile)\.rs$", mutant["file"]) and not named
names = sorted(mutant["name"] for mutant in json.load(open(path)) if counts(mutant))
random.seed(seed)
for name in sorted(random.sample(names, min(size, len(names)))):
    print(name)
PYTHON
  only=()
  while IFS= read -r name; do
    only+=(--re "^$(printf '%s' "$name" | sed 's/[][\.*^$+?(){}|/&-]/\\&/g')\$")
  done < "$DIR/$crate.sample"
  rm -rf "$DIR/$crate.out" && mkdir -p "$DIR/$crate.out"
  # Mutants that delete a field are run besides: the filter does not leave them out. 2: some were missed; 3: some
  # ended by the time limit.
  cargo mutants --in-place -p "rota-$crate" "${only[@]}" --timeout 300 -o "$DIR/$crate.out" -- --tests ||
    [ $? -le 3 ]
done
for crate in "$@"; do
  out="$DIR/$crate.out/mutants.out"
  lines() { grep -c . "$out/$1.txt" || true; }
  found=$(($(lines caught) + $(lines timeout)))
  echo "$crate: $found of $((found + $(lines missed))) found, $(lines unviable) do not compile"
  sed 's/^/  missed: /' "$out/missed.txt"
done
