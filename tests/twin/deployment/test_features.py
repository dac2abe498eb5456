"""Features: each sets what-if paths that exist, works somewhere, and is refused in a line."""

import pytest

import twin
from twin.api.requests.values import parse_settings
from twin.deployment.changes import list_paths
from twin.deployment.features import list_features, switch_on
from twin.errors import TwinError, UsageError

PLACES = (("ic", "nucleo_h7a3zi_q", "tflm-cmsis-nn"), ("ic", "apollo510_evb", "tflm-cmsis-nn@2026"),
          ("ic", "nucleo_f401re", "cmsis-nn"), ("ic", "stm32n6570_dk", "neural-art"))


@pytest.mark.parametrize("name", [name for name, _, _ in list_features()])
def test_every_feature_names_known_paths_and_can_be_made_somewhere(name):
    paths = switch_on([name])
    assert {path for path in paths} <= {path for path, _, _ in twin.list_paths()}
    made = []
    for model, board, runtime in PLACES:
        try:
            made.append(twin.deploy(model, board, runtime=runtime).replace(paths))
        except TwinError:
            continue
    assert made


def test_features_are_settings_by_name():
    assert parse_settings(["no_simd, half_width", "placement.arena=tcm"]) == {
        "placement.arena": "tcm", "kernels.extension": "c", "network.width": "0.5"}
    board = "nucleo_h7a3zi_q"
    by_name, by_path = (twin.predict(twin.deploy("kws", board).replace(parse_settings([one])))
                        for one in ("no_simd", "kernels.extension=c"))
    assert by_name.cycles == by_path.cycles > twin.predict(twin.deploy("kws", board)).cycles


@pytest.mark.parametrize("words, message", [
    (["no_simdd"], "or a feature: no feature is 'no_simdd'; did you mean no_simd"),
    (["fuse_ops,unfused"], "unfused sets network.fusion to none, another one to all"),
    (["half_width", "network.width=0.7"], "--set network.width: is set twice")])
def test_a_wrong_feature_is_refused(words, message):
    with pytest.raises(UsageError, match=message):
        parse_settings(words)


def test_paths_are_those_of_the_catalogue():
    assert {"network.width", "kernels.extension"} <= {path for path, _, _ in list_paths()}
