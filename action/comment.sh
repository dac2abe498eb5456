#!/usr/bin/env bash
# Comment on a pull request, or replace the comment of an earlier run: comment.sh FOLDER [HEAD]
# With HEAD the folder is another run's artefact, which is believed only if that is the pull request's commit.
set -euo pipefail
pull="$(cat "$1/pull")"
[[ "$pull" =~ ^[0-9]+$ ]] || { echo "::error::$1/pull: no number of a pull request"; exit 2; }
MARK="$(head -n 1 "$1/comment.md")"
export MARK
[[ "$MARK" == '<!-- twin diff '*' -->' ]] || { echo "::error::$1/comment.md: not of twin diff"; exit 2; }
if [ -n "${2:-}" ] && [ "$(gh api "repos/$GITHUB_REPOSITORY/pulls/$pull" --jq .head.sha)" != "$2" ]; then
    echo "::error::pull request $pull is at another commit than $2"; exit 2
fi
issues="repos/$GITHUB_REPOSITORY/issues"
found="$(gh api --paginate "$issues/$pull/comments" --jq '.[] | select(.body | startswith(env.MARK)) | .id' | head -n 1)"
if [ -n "$found" ]; then to=(-X PATCH "$issues/comments/$found"); else to=("$issues/$pull/comments"); fi
gh api "${to[@]}" -F "body=@$1/comment.md" > /dev/null ||
    echo "::notice::this run may not comment; its artefact has the comment, for action/comment in a workflow_run"
