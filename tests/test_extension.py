"""The example extension, installed as a user would; and extensions that are wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest
from cache_layers import make_conv
from made_loops import Subgraph, write_subgraphs
from reference_cache import ReferenceCache

import twin
from calibration.importers import import_log
from hwmodels import extensions
from hwmodels.board import policies
from hwmodels.board.facts import Cache
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.cache.set_associative import METHODS, new_state, simulate_nests
from hwmodels.cache.touches import visit_touches
from hwmodels.errors import BoardError, ExtensionError
from hwmodels.nest import plan
from twin.errors import ModelError
from twin.pricing.structure import forget_structures
from twin.runtimes.file import list_runtimes

EXAMPLE = Path(__file__).parents[1] / "examples" / "extension"
CACHED = (policies._load_policy, plan.plan_nests, extensions.find_entries,
          extensions.find_folders, extensions.load_entry, extensions.hash_package)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Where pip put the package."""
    place = tmp_path_factory.mktemp("extension")
    shutil.copytree(EXAMPLE, place / "source")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--no-build-isolation", "--disable-pip-version-check", "--target",
                    str(place / "site"), str(place / "source")], check=True)
    return place / "site"


@pytest.fixture
def find(monkeypatch):
    """Put a folder on the path, as an environment that has it."""
    def add(folder: Path) -> None:
        monkeypatch.syspath_prepend(str(folder))
        invalidate_caches()
        for one in CACHED:
            one.cache_clear()

    yield add
    for name in [name for name in sys.modules if name.split(".")[0] in ("acme_twin", "wrong")]:
        del sys.modules[name]
    for one in CACHED:
        one.cache_clear()


@pytest.fixture
def gated(tmp_path) -> Path:
    """A network whose only operator is the extension's."""
    graph = Subgraph()
    given = graph.input((1, 40), "int8")
    graph.outputs = [graph.operator("AcmeGate", [given], (1, 40), dtype="int8")]
    write_subgraphs(tmp_path / "gated.tflite", [graph])
    return tmp_path / "gated.tflite"


def test_everything_of_an_installed_extension_is_used(site, find, gated, tmp_path,
                                                      monkeypatch) -> None:
    assert "acme_evk" not in list_boards()
    with pytest.raises(ModelError, match="AcmeGate"):
        twin.read_model(gated)
    find(site)
    assert "acme_evk" in list_boards() and "acme-nn@1.0" in list_runtimes()
    prediction = twin.predict(twin.deploy("kws", "acme-evk", runtime="acme-nn"))
    assert prediction.cycles > 1e6 and prediction.deployment.runtime.identity == "acme-nn@1.0"
    for runtime in ("acme-nn", "tflm-reference@2026", "x-cube-ai"):
        (layer,) = twin.predict(twin.deploy(gated, "nucleo_l4r5zi", runtime=runtime)).layers
        assert layer.op == "acme_gate" and layer.kernels == ("AcmeGateEval",)
        assert layer.counts.occurred("load_issue") >= 40 and layer.assumed

    log = tmp_path / "profile.txt"
    log.write_text("acme;0;1200\nacme;1;340\n")
    found = import_log("acme-log", log).measurement
    assert [(one.layer, one.value) for one in found.samples] == [(0, 1200), (1, 340)]
    from twin.reports.figures import overview

    monkeypatch.setattr(overview, "PICTURES", {})  # which tests/twin/reports/test_figures.py draws
    written = overview.write_pictures(prediction, f"{tmp_path}/pictures/")
    assert [path.name for path in written] == ["intensity.png"]


def test_an_extension_counts_again_when_its_code_changes(site, find, gated, monkeypatch, tmp_path):
    """What was kept on disk by another release of the package is not taken for this one's."""
    monkeypatch.setenv("TWIN_COUNTS", str(tmp_path / "counts"))
    place = tmp_path / "site"
    shutil.copytree(site, place)
    find(place)

    def count() -> int:
        forget_structures()
        twin.predict(twin.deploy(gated, "nucleo_l4r5zi", runtime="tflm-reference@2026"))
        return len([*(tmp_path / "counts").glob("counts.*")])

    assert (first := count()) == count()
    with (place / "acme_twin" / "gate.py").open("a") as source:
        source.write("# another release\n")
    extensions.hash_package.cache_clear()
    assert count() > first


class NotRecent(ReferenceCache):
    """The reference, with a bit for every way touched since all others were."""

    def point_away(self, index, way):
        recent = self.points_right.setdefault(index, set())
        recent.add(way)
        if len(recent) == self.cache.ways:
            self.points_right[index] = {way}

    def choose(self, index, mates):
        return next(mates[way] for way in range(self.cache.ways)
                    if way not in self.points_right[index])


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "without numba"])
def test_a_replacement_policy_counts_as_its_reference(site, find, monkeypatch, caplog, compiled):
    if compiled:
        pytest.importorskip("numba")
    else:  # as where the extra is not installed
        monkeypatch.setitem(sys.modules, "hwmodels.kernels.build", None)
    find(site)
    cache = Cache(name="l1d", size_bytes=256, line_bytes=32, ways=4, replacement="acme_not_recent")
    state, oracle, evictions = new_state(cache), NotRecent(cache=cache, seed=1), 0
    for number in range(2):
        nests, operands = make_conv(5, 4, 3, 6 + number, 3, 1)
        oracle.counts.clear()
        oracle.run(nests, operands)
        for method in METHODS:
            counts, after = simulate_nests(cache, nests, operands, state, method=method)
            assert after == visit_touches(cache, nests, operands, state, bool)
            for event in ("read_misses", "write_misses"):
                assert {one.operand: getattr(one, event) for one in counts.operands} == {
                    one.name: oracle.counts[one.name, event] for one in operands}
            assert {(one.memory, one.role): one.evictions for one in counts.owners} == {
                owner: found for (owner, event), found in oracle.counts.items()
                if event == "evictions"}
        state, evictions = after, evictions + counts.evictions
    assert evictions > 50
    assert ["embedded-twin[compile]" in record.message for record in caplog.records] == (
        [] if compiled else [True])


def test_a_board_may_have_a_policy_of_another_package(site, find) -> None:
    board = load_board("nucleo_h7a3zi_q")
    with pytest.raises(BoardError, match=r"accepted: lru, .*global_round_robin$"):
        change_board(board, {"caches.l1d.replacement": "acme_not_recent"})
    find(site)
    changed = change_board(board, {"caches.l1d.replacement": "acme_not_recent"})
    before, after = (twin.predict(twin.deploy("kws", one)).cycles for one in (board, changed))
    assert before != after


def _install(place: Path, entries: str, **modules: str) -> Path:
    """Make a package that is wrong."""
    for name, content in modules.items():
        (place / f"{name}.py").write_text(content)
    info = place / "wrong-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entries)
    return place


@pytest.mark.parametrize("entries, module, act, told", [
    ("[twin.boards]\na = wrong", "", list_boards, "wrong: twin.boards: a = wrong is no package"),
    ("[twin.runtimes]\na = nowhere.at", "", list_runtimes, "No module named 'nowhere'"),
    ("[twin.operators]\nodd = wrong", "", lambda: twin.read_model("gated.tflite"), ""),
    ("[twin.operators]\nodd = wrong", "raise SystemError('boom')",
     lambda: extensions.load_entry("twin.operators", "odd"), "cannot be imported: SystemError"),
    ("[twin.policies]\nodd = wrong", "touch = len",
     lambda: policies.policy_of("odd"), "twin.policies: odd = wrong: has no choose"),
    ("[twin.policies]\nodd = wrong", "def choose(word, ways):\n    return 'a'\n"
     "def touch(word, way, filled, ways):\n    return word",
     lambda: policies.policy_of("odd"), "twin.policies: odd = wrong: BuildError: "),
    ("[twin.importers]\nodd = wrong", "EXPECTED = ''",
     lambda: import_log("odd", "x"), "odd = wrong: has no recognise"),
    ("[twin.importers]\nodd = wrong", "raise SystemExit(9)",
     lambda: import_log("odd", "x"), "cannot be imported: SystemExit: 9"),
    ("[twin.importers]\nodd = wrong", "EXPECTED = ''\nrecognise = bool\nread_log = len",
     lambda: import_log("odd", __file__), "odd = wrong: TypeError: object of type 'Log'"),
    ("[twin.importers]\nodd = wrong", "EXPECTED = ''\nrecognise = bool\nread_log = type",
     lambda: import_log("odd", __file__), "read_log returned type; accepted: Measurement"),
])
def test_a_wrong_extension_is_named(tmp_path, find, gated, monkeypatch, entries, module, act,
                                    told) -> None:
    monkeypatch.chdir(gated.parent)
    (tmp_path / "site").mkdir()
    find(_install(tmp_path / "site", entries, wrong=module))
    with pytest.raises(ExtensionError if told else ModelError, match=told or "AcmeGate"):
        act()


def test_a_warm_prediction_never_lists_packages() -> None:
    code = ("import sys, twin; twin.predict(twin.deploy('kws', 'nucleo_l4r5zi')); "
            "print('importlib.metadata' in sys.modules)")
    for _ in range(2):  # the first reads files anew where they changed
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                               check=True, cwd=EXAMPLE.parents[1])
    assert ended.stdout == "False\n"


def test_an_extension_adds_cores_features_steps_and_meters(site, find, tmp_path) -> None:
    from calibration.power_trace.meter_files import read_meter_file
    from hwmodels.core.file import list_cores, load_core
    from twin.api.requests.values import parse_settings
    from twin.studies.functions import process_rows

    assert "acme-c0" not in list_cores()
    find(site)
    assert "acme-c0" in list_cores() and load_core("acme-c0").model == "acme-c0"
    assert parse_settings(["acme_small"]) == {"network.width": "0.5", "network.weights": "int4"}
    assert "acme_small" in {name for name, _, _ in twin.list_features()}
    rows = process_rows(["acme_fastest"], [
        {"board": "a", "runtime": "x", "time_us": 8.0}, {"board": "a", "runtime": "y",
                                                         "time_us": 4.0}])
    assert [row["of_best"] for row in rows] == [1.0, 2.0]
    path = tmp_path / "trace.txt"
    path.write_text("".join(f"{n / 1000:.3f} {10 + 20 * (5 <= n < 15)} {int(5 <= n < 15)}\n"
                            for n in range(20)))
    trace = read_meter_file(path, "acme-meter")
    assert trace.marks_us == (5000.0, 15000.0) and trace.power_mw.max() == 30


def test_an_extension_measures_by_its_back_end_and_emulator(site, find, monkeypatch, tmp_path):
    pytest.importorskip("unicorn")
    find(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    found = twin.measure("ad", "host", twin.MeasureOptions(
        backend="acme-numpy", runs=3, warmup=1, output=tmp_path / "host"))
    warm, = found.networks
    assert warm.measurement.header.runtime.startswith("acme-numpy@")
    assert warm.measurement.values("acme_layers").tolist() == [10, 10, 10]
    found = twin.measure("ad", "nucleo_l4r5zi", twin.MeasureOptions(
        virtual="acme-m4", runs=1, warmup=0, fixed=True, output=tmp_path / "board"))
    assert found.networks[-1].measurement.header.kind == "simulated"
    assert found.networks[-1].whole.p50 > 900_000
