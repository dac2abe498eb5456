"""A measurement that is named twice counts once."""

import shutil

from twin.attribution.folders import drop_repeated


def test_a_folder_another_spelling_and_a_copy_count_once(tmp_path) -> None:
    for name in ("a", "b", "empty"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samples.jsonl").write_text("" if name == "empty" else name)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    named = [f"{tmp_path}/{name}" for name in ("a", "b", "a", "b/../a", "copy", "empty", "empty")]
    once, remarks = drop_repeated(named)
    assert once == [named[0], named[1], named[5]]
    assert [one.split(":")[0] for one in remarks] == [named[2], named[3], named[4], named[6]]
    assert f"has the samples of {named[0]}; they count once" in remarks[0]
