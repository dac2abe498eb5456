"""The list of public model files: its form; and, where their repositories are, each file again.

    python -m tests.twin.network.test_public_models FOLDER

rewrites benchmarks/public/models.csv; FOLDER holds git directories FOLDER/OWNER+NAME/repo. Nothing
of them is kept here but their names.
"""

import collections
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

import pytest

import twin
from twin.errors import TwinError

LIST = Path(__file__).parents[3] / "benchmarks" / "public" / "models.csv"
BOARDS = ("nucleo_h7a3zi_q", "stm32h747i_disco", "esp32s3_devkitc", "apollo510_evb",
          "stm32n6570_dk", "grove_vision_ai_v2", "alif_e7_devkit")
"""The first that a file fits: the largest memories last."""
LEAST_FILES, LEAST_SHARE = 200, 0.95


def read_list():
    with LIST.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def judge(row, content):
    """Return a row with its outcome: the board it was predicted for, or why it was refused."""
    row = {**row, "outcome": "refused", "board": ""}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / PurePosixPath(row["path"]).name
        file.write_bytes(content)
        for board in BOARDS:
            try:
                assert twin.predict(twin.deploy(file, board)).time_us > 0
            except TwinError as error:
                why = str(error).replace(str(file), "").removeprefix(": ")
                row["why"] = why if len(why) <= 110 else f"{why[:107]}..."
            else:
                return {**row, "outcome": "predicted", "board": board, "why": ""}
    return row


def read_blob(folder, row):
    git = Path(folder) / row["repository"].replace("/", "+") / "repo"
    name = f"{row['commit']}:{row['path']}"
    content = subprocess.run(["git", "-C", git, "cat-file", "blob", name], capture_output=True,
                             check=True).stdout
    assert hashlib.sha256(content).hexdigest() == row["sha256"], row["path"]
    return content


def test_the_list_is_long_unique_and_nearly_all_predicted():
    rows = read_list()
    assert len({row["sha256"] for row in rows}) == len(rows) >= LEAST_FILES
    outcomes = collections.Counter(row["outcome"] for row in rows)
    assert set(outcomes) == {"predicted", "refused"}
    assert outcomes["predicted"] >= LEAST_SHARE * len(rows)
    assert all((row["outcome"] == "refused") == bool(row["why"]) for row in rows)
    assert all(len(row["commit"]) == 40 and len(row["sha256"]) == 64 for row in rows)


FOLDER = os.environ.get("TWIN_PUBLIC_MODELS")


@pytest.mark.skipif(not FOLDER, reason="files are the user's, as those of TWIN_MODELS: "
                                       "TWIN_PUBLIC_MODELS names no folder")
def test_files_that_are_here_have_the_outcome_listed():
    for row in read_list():
        assert judge(row, read_blob(FOLDER, row))["outcome"] == row["outcome"], row


if __name__ == "__main__":
    judged = [judge(row, read_blob(sys.argv[1], row)) for row in read_list()]
    with LIST.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, judged[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(judged)
    print(collections.Counter(row["outcome"] for row in judged))
