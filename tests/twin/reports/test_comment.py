"""A comment of a pull request: its figures are the difference's, its text nobody's code."""

import json
import re

import twin
from twin.documents import dump_document
from twin.reports.comment import MOST_ROWS, write_comment


def _predict(tmp_path, name: str, **changes):
    path = tmp_path / f"{name}.json"
    deployment = twin.deploy("kws", "nucleo_l4r5zi").replace(changes)
    path.write_text(dump_document(twin.to_document(twin.predict(deployment))))
    return path


def test_totals_causes_and_layers_are_those_of_the_difference(tmp_path) -> None:
    before = _predict(tmp_path, "before")
    after = _predict(tmp_path, "after", **{"caches.art_d.enabled": False})
    found = twin.diff(before, after)
    text = write_comment(found, 0.001)
    assert text.splitlines()[0] == "<!-- twin diff kws_on_nucleo_l4r5zi -->"
    assert f"{found.main.total.gap:+,} cycles" in text.splitlines()[1]
    causes, layers = re.findall(r"<details>.*?</details>", text, re.DOTALL)
    assert "conv_2d" in layers
    moved = [int(row.split("|")[-2].replace(",", "")) for row in causes.splitlines()[4:]
             if row.startswith("|")]
    assert sum(moved) == found.main.total.gap and 0 < len(moved) <= MOST_ROWS
    assert "| exceeds |" in text and "| ok |" in text
    assert len(text) < 65_536
    assert "limit" not in write_comment(found)
    assert "By cause" not in write_comment(twin.diff(before, before))
    assert write_comment(twin.diff(before, before)).splitlines()[1].endswith(": no change")


def test_the_heading_has_a_size_that_grows_where_the_time_stays(tmp_path) -> None:
    before = _predict(tmp_path, "before")
    document = json.loads(before.read_text())
    document["flash_bytes"] = round(1.35 * document["flash_bytes"])
    (tmp_path / "larger.json").write_text(json.dumps(document))
    found = twin.diff(before, tmp_path / "larger.json")
    for limit in (None, 0.02, 0.5):
        heading = write_comment(found, limit).splitlines()[1]
        assert heading.endswith(": no change in cycles, flash +35.00 %")
    assert "**1 figure grows by more than 2 %**" in write_comment(found, 0.02)


def test_a_name_is_neither_markdown_nor_html(tmp_path) -> None:
    before = _predict(tmp_path, "before")
    document = json.loads(before.read_text())
    document["model"]["name"] = "--><script>[x](http://evil)|`"
    (tmp_path / "evil.json").write_text(json.dumps(document))
    text = write_comment(twin.diff(before, tmp_path / "evil.json", anyway=True))
    assert "<script>" not in text.replace("\\<", "") and "[x](" not in text
    assert re.fullmatch(r"<!-- twin diff [\w.]+ -->", text.splitlines()[0])
