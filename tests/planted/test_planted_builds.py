"""Builds that are slow for a known reason: `why` finds it, and is as sure as it is right."""

from made.made_builds import ASKERS, CASES, calibrate, judge, score


def test_planted_causes_are_found_and_probabilities_are_true():
    judged = judge([4], CASES[:1], ASKERS[:6])
    scores = {asker: score(found) for asker, found in judged.items()}
    assert scores["number"]["plants"] > 20
    assert scores["number"]["healthy"] >= 0.9
    assert scores["number"]["three"] > 0.5
    assert scores["2"]["first"] > 0.55 and scores["3"]["three"] > 0.8
    assert scores["3"]["first"] > scores["1"]["first"] > scores["number"]["first"]
    assert scores["published"]["healthy"] >= 0.8
    assert scores["published, 3"]["three"] >= scores["published"]["three"] > 0.5
    for low, stated, true, count in calibrate(judged["number"]):
        assert count < 30 or abs(stated - true) < 0.15, low
