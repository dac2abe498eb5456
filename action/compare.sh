#!/usr/bin/env bash
# Predict a model or an ELF at a pull request's base and here; write the difference to twin-diff/.
set -euo pipefail

fail() { echo "::error::$1"; exit 2; }
[ -n "$BASE" ] || fail "no base: this action runs on pull_request"
[ -n "${MODEL:-}${ELF:-}" ] || fail "give model or elf"
[ -z "${MODEL:-}" ] || [ -z "${ELF:-}" ] || fail "give model or elf, not both"
git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE"

out="$PWD/twin-diff"
checkout="$(mktemp -d)"
trap 'git worktree remove --force "$checkout/base"; rm -rf "$checkout"' EXIT
git worktree add --quiet --detach "$checkout/base" "$BASE"
mkdir -p "$out"
printf '%s\n' "$PULL" > "$out/pull"
read -r -a options <<< "${OPTIONS:-}"
if [ -n "${ELF:-}" ]; then what=(--elf "$ELF"); else what=("$MODEL"); fi

predict() {  # FOLDER RESULT
    cd "$1"
    if [ -n "${BUILD:-}" ]; then bash -euc "$BUILD" >&2; fi
    [ -e "${ELF:-$MODEL}" ] || return 3
    twin predict "${what[@]}" -b "$BOARD" "${options[@]}" --json > "$2"
}
(predict "$PWD" "$out/after.json")
code=0
(predict "$checkout/base" "$out/before.json") || code=$?
exceeds=false
if [ "$code" = 3 ]; then
    printf '<!-- twin diff %s -->\n### %s is new\n\n' "$(tr -c '[:alnum:]_.\n' _ <<< "${ELF:-$MODEL}_on_$BOARD")" \
        "\`${ELF:-$MODEL}\`" > "$out/comment.md"
elif [ "$code" != 0 ]; then
    exit "$code"
else
    limit=()
    if [ -n "${MAX_INCREASE:-}" ]; then limit=(--max-increase "$MAX_INCREASE"); fi
    # Another network is what a pull request may bring: it is noted in the comment.
    twin diff "$out/before.json" "$out/after.json" --anyway --markdown "$out/comment.md" "${limit[@]}" || code=$?
    case "$code" in 0) ;; 1) exceeds=true ;; *) exit "$code" ;; esac
fi
cat "$out/comment.md" >> "$GITHUB_STEP_SUMMARY"
echo "exceeds=$exceeds" >> "$GITHUB_OUTPUT"
