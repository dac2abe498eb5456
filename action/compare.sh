#!/usr/bin/env bash
# Predict a model or an ELF at a pull request's base and here; write the difference to twin-diff/.
set -euo pipefail

fail() { echo "::error::$1"; exit 2; }
file="${ELF:-${MODEL:-}}"
[ -n "$file" ] || fail "give model or elf"
[ -z "${MODEL:-}" ] || [ -z "${ELF:-}" ] || fail "give model or elf, not both"
# What is checked out is the merge of the pull request: its first parent is what it is merged into now.
mapfile -t parents < <(git cat-file -p HEAD | sed -n 's/^parent //p')
if [ "${#parents[@]}" = 2 ]; then BASE="${parents[0]}"; fi
[ -n "$BASE" ] || fail "no base: this action runs on pull_request"
git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE"

out="$PWD/twin-diff"
checkout="$(mktemp -d)"
trap 'git worktree remove --force "$checkout/base"; rm -rf "$checkout"' EXIT
git worktree add --quiet --detach "$checkout/base" "$BASE"
mkdir -p "$out"
printf '%s\n' "$PULL" > "$out/pull"
read -r -d '' -a options <<< "${OPTIONS:-}" || true
if [ -n "${ELF:-}" ]; then what=(--elf "$ELF"); else what=("$MODEL"); fi
# Of one network, board and options: a comment and an artefact of their own.
key="$(tr -cs '[:alnum:]_.\n' _ <<< "$file on $BOARD ${options[*]}")"
key="${key%_}"

build() {  # FOLDER NAME
    [ -z "${BUILD:-}" ] || (cd "$1" && bash -euc "$BUILD" >&2) || fail "$2: build failed: $BUILD"
}
predict() {  # FOLDER NAME RESULT
    (cd "$1" && twin predict "${what[@]}" -b "$BOARD" "${options[@]}" --json > "$3") ||
        fail "$2: twin predict $file ended with $?; its message is above"
}
build . "this pull request"
[ -e "$file" ] || fail "$file: not in this pull request; accepted: a file of the repository, or one that build makes"
predict . "this pull request" "$out/after.json"
build "$checkout/base" "its base"
exceeds=false
if [ -e "$checkout/base/$file" ]; then
    predict "$checkout/base" "its base" "$out/before.json"
    limit=()
    if [ -n "${MAX_INCREASE:-}" ]; then limit=(--max-increase "$MAX_INCREASE"); fi
    # Another network is what a pull request may bring: it is noted in the comment.
    code=0
    twin diff "$out/before.json" "$out/after.json" --anyway --markdown "$out/diff.md" "${limit[@]}" || code=$?
    case "$code" in 0) ;; 1) exceeds=true ;; *) fail "twin diff ended with $code" ;; esac
    tail -n +2 "$out/diff.md" > "$out/body.md"
else
    printf '### %s is new\n' "\`$file\`" > "$out/body.md"
fi
{ echo "<!-- twin diff $key -->"; cat "$out/body.md"; } > "$out/comment.md"
rm -f "$out/diff.md" "$out/body.md"
cat "$out/comment.md" >> "$GITHUB_STEP_SUMMARY"
{ echo "exceeds=$exceeds"; echo "key=$key"; } >> "$GITHUB_OUTPUT"
