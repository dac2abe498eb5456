"""The interface behind the live page: it says what `twin.predict` says, and takes nothing else."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import twin
from twin.api.live import pool as pools
from twin.api.live import uploads
from twin.api.live.guard import LARGEST_BODY
from twin.api.live.pool import Worker
from twin.cli import app as command_line
from twin.errors import UsageError, WorkerError

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`", "ignore::DeprecationWarning")

CLOCK = "clocks.cpu.frequency_hz"
KWS = {"model": "kws", "board": "nucleo_l4r5zi"}
BYTES = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def service():
    from twin.api.live.app import Service

    return Service()


@pytest.fixture(scope="module")
def client(service):
    from starlette.testclient import TestClient

    from twin.api.live.app import make_app

    with TestClient(make_app(service), base_url="http://localhost") as opened:
        yield opened
    assert not service.uploads.folder.exists()


def ask(client, what, **body):
    answer = client.post(f"/api/{what}", json=body)
    return answer.status_code, answer.json()


def refuse(client, what, **body):
    status, answer = ask(client, what, **body)
    assert status == 422 and "\n" not in answer["error"] and len(answer["error"]) < 500
    return answer["error"]


@pytest.mark.parametrize("state", [
    {**KWS, "set": {CLOCK: "77MHz", "placement.weights": "sram"}},
    {**KWS, "model": "ad", "runtime": "tflm-cmsis-nn@2.3.1", "calibration": "none",
     "temperature": "cold", "set": {"caches.art_d.size_bytes": "512"}},
    {"model": "kws", "board": "stm32n6570_dk", "runtime": "neural-art@3.0.0",
     "set": {CLOCK: "700MHz"}},
], ids=["clock", "cold", "accelerator"])
def test_figures_are_those_of_predict(client, state) -> None:
    status, found = ask(client, "predict", state=state, controls=True)
    assert status == 200, found
    deployed = twin.deploy(state["model"], state["board"], runtime=state.get("runtime"))
    made = twin.predict(deployed.replace(state["set"]),
                        calibration=state.get("calibration", "auto"),
                        temperature=state.get("temperature", "warm"))

    def near(value):
        return pytest.approx(value, rel=1e-12)

    assert found["time_us"]["value"] == near(made.time_us)
    assert sum(one["time_us"] for one in found["causes"]) == near(made.time_us)
    assert found["layers"]["time_us"] == near([layer.time_us for layer in made.layers])
    for told, layer in zip(found["described"], made.layers, strict=True):
        assert sum(told["causes"].values()) == near(layer.time_us)
    if made.energy_uj is not None:
        assert found["energy_uj"]["value"] == near(made.energy_uj)
        assert sum(one["energy_uj"] for one in found["causes"]) == near(made.energy_uj)
        board = made.deployment.board
        idle_mw = board.idle().mw if board.idle() else 0.0
        assert found["whole_uj"]["value"] == near(made.energy_uj + idle_mw * made.time_us * 1e-3)
        assert (found["whole_uj"]["low"] is None) == (made.certainty is None)
        assert found["energy_kind"] == f"energy_uj of a {board.power.boundary}"
    if made.certainty is not None:
        assert found["time_us"]["low"] == near(made.certainty.time_us.low)
    assert found["memory"]["ram_bytes"] == made.ram_bytes
    assert {one["path"] for one in found["controls"]["clocks"]} >= {CLOCK}
    assert not {"firmware@O2"} & set(found["controls"]["runtimes"]["others"])
    for place in found["controls"]["places"]:  # what is offered can be
        for value in place["values"]:
            turned = {**state, "set": {**state["set"], place["path"]: value["value"]}}
            if state["board"] == "stm32n6570_dk":
                assert ask(client, "predict", state=turned)[0] == 200, turned


def test_a_setting_without_effect_is_named(client) -> None:
    changes = {"placement.weights": "flash", CLOCK: "80MHz"}
    said = ask(client, "predict", state={**KWS, "set": changes})[1]["warnings"]
    (idle,) = (text for text in said if text.startswith("no effect"))
    assert idle == "no effect: placement.weights=flash changes nothing here: it is that already"


def test_a_drag_is_priced_from_kept_counts_as_predict_would(client) -> None:
    state = {"model": "kws", "board": "nucleo_h7a3zi_q", "set": {CLOCK: "280MHz"}}
    status, first = ask(client, "reprice", state=state, path=CLOCK)
    assert status == 200 and not first["kept"]  # nothing is simulated for a drag
    assert ask(client, "reprice", state=state, path=CLOCK, begin=True)[1]["kept"]
    base = twin.deploy("kws", "nucleo_h7a3zi_q")
    for megahertz in (279.5, 61, 150):
        state["set"][CLOCK] = f"{megahertz}MHz"
        slid = ask(client, "reprice", state=state, path=CLOCK)[1]
        made = twin.predict(base.replace({CLOCK: megahertz * 1e6}))
        assert slid["kept"]
        assert slid["time_us"]["value"] == pytest.approx(made.time_us, rel=1e-12)
        assert slid["energy_uj"]["high"] == pytest.approx(made.certainty.energy_uj.high, rel=1e-12)
        power = made.deployment.board.power
        assert slid["operating"]["voltage_scale"] == power.voltage_scale
        assert slid["operating"]["clocks"]["cpu"] == megahertz * 1e6
    assert "900 MHz" in refuse(client, "reprice", path=CLOCK,
                               state={**state, "set": {CLOCK: "900MHz"}})
    assert "accepted: clocks.NAME" in refuse(client, "reprice", state=state, path="a.b")


def test_what_was_predicted_is_known_again(client) -> None:
    state = {**KWS, "set": {"caches.art_d.size_bytes": "1024"}}
    assert not ask(client, "reprice", state=state, path="")[1]["kept"]
    made = ask(client, "predict", state=state)[1]
    again = ask(client, "reprice", state=state, path="")[1]
    assert again["kept"] and again["time_us"] == made["time_us"]


@pytest.mark.parametrize(("state", "said"), [
    ({**KWS, "model": "/etc/passwd"}, "accepted"),
    ({**KWS, "model": "../kws.tflite"}, "file that is uploaded"),
    ({**KWS, "board": "hwmodels/boards/nucleo_l4r5zi.yaml"}, "board"),
    ({**KWS, "model": "upload:" + "0" * 64}, "uploading it again"),
    ({**KWS, "model": "upload:../../x"}, "model"),
    ({**KWS, "runtime": "../x"}, "state.runtime"),
    ({**KWS, "runtime": "mine.yaml"}, "names a file"),
    ({**KWS, "runtime": "firmware@O2"}, "compiler"),
    ({**KWS, "calibration": "/etc/passwd"}, "state.calibration"),
    ({**KWS, "set": {"runtime": "firmware@O2"}}, "a key of its own"),
    ({**KWS, "set": {"no.such": "1"}}, "no such path"),
    ({**KWS, "set": {"a/../b": "1"}}, "state.set"),
    ({**KWS, "set": {CLOCK: "1\x1b[2J"}}, "printable"),
    ({**KWS, "set": {CLOCK: 80}}, "string"),
    ({**KWS, "set": {f"a.b{place}": "1" for place in range(41)}}, "40"),
    ({**KWS, "more": 1}, "extra"),
    ({"model": "kws"}, "state.board"),
    ({**KWS, "model": "mobilenet_v1_1.0_224"}, "does not fit"),
    ("kws", "state"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_state_that_cannot_be_is_refused_in_a_line(client, state, said) -> None:
    assert said in refuse(client, "predict", state=state)


def test_what_does_not_fit_still_tells_what_can_be_turned(client) -> None:
    status, found = ask(client, "predict", state={**KWS, "model": "mobilenet_v1_1.0_224"},
                        controls=True)
    assert status == 422 and found["kind"] == "DoesNotFitError" and found["controls"]["places"]


def test_an_export_gives_the_same_figures(client, tmp_path, monkeypatch) -> None:
    states = [{**KWS, "runtime": "tflm-cmsis-nn@2.3.1", "set": {CLOCK: "80MHz"}},
              {**KWS, "runtime": "x-cube-ai@9.0.0", "set": {"placement.weights": "sram"}}]
    told = [ask(client, "predict", state=state)[1]["time_us"]["value"] for state in states]
    found = ask(client, "export", variants=[{"label": f"it's {place}", "state": state}
                                            for place, state in enumerate(states)])[1]
    words = shlex.split(found["command"])[1:]
    ended = CliRunner().invoke(command_line, [*words, "--json"])
    total = json.loads(ended.stdout)["total"]
    assert total["time_us"] == pytest.approx(told[0], rel=1e-12)
    (study,) = found["studies"]
    monkeypatch.chdir(tmp_path)
    Path(study["file"]).write_text(study["text"])
    rows = twin.run_study(study["file"], "out").load_results().rows
    assert [row.time_us for row in rows] == pytest.approx(told, rel=1e-12)


def test_an_upload_is_read_and_predicted(client, service, tmp_path) -> None:
    twin.export_model("ad", tmp_path / "mine.tflite")
    content = (tmp_path / "mine.tflite").read_bytes()
    answer = client.post("/api/models?name=..%2F..%2Fm%20ine.tflite", content=content,
                         headers=BYTES)
    found = answer.json()
    assert answer.status_code == 200 and found["file"] == "m_ine.tflite" and found["layers"] == 10
    board = Path(twin.__file__).parents[1] / "hwmodels" / "boards" / "nucleo_f401re.yaml"
    other = client.post("/api/boards?name=my.yaml", content=board.read_bytes(), headers=BYTES)
    state = {"model": found["key"], "board": other.json()["key"]}
    status, made = ask(client, "predict", state=state)
    expected = twin.predict(twin.deploy(str(tmp_path / "mine.tflite"), str(board)))
    assert status == 200
    assert made["time_us"]["value"] == pytest.approx(expected.time_us, rel=1e-12)
    exported = ask(client, "export", variants=[{"label": "a", "state": state}])[1]
    assert exported["command"] == "twin predict m_ine.tflite -b my.yaml"
    assert "Beside this file" in exported["studies"][0]["text"]


def test_an_upload_that_is_refused_leaves_nothing_and_tells_no_place(client, service) -> None:
    before = sorted(service.uploads.folder.iterdir())
    for name, content, said in (("a.tflite", b"no model", "not a TensorFlow Lite file"),
                                ("a.json", b"[" * 5000, "deep"),
                                ("a.exe", b"x", "accepted: a model file"),
                                ("a.tflite", b"", "bytes")):
        answer = client.post(f"/api/models?name={name}", content=content, headers=BYTES)
        assert answer.status_code == 422 and said in answer.json()["error"], answer.text
        assert str(service.uploads.folder) not in answer.text
    assert sorted(service.uploads.folder.iterdir()) == before


def test_few_uploads_are_kept(monkeypatch, service) -> None:
    class Reader:
        async def ask(self, request, about):
            return {"found": {}}

    monkeypatch.setattr(uploads, "MOST_FILES", 2)
    kept = uploads.Uploads()
    keys = [asyncio.run(kept.add("model", "a.onnx", bytes([place]), Reader())).key
            for place in range(3)]
    assert list(kept.names()) == keys[1:] and len(list(kept.folder.iterdir())) == 2
    kept.close()
    with pytest.raises(UsageError, match="has 2 bytes; accepted: from 1 up to 1"):
        monkeypatch.setattr(uploads, "LARGEST_BYTES", {"model": 1})
        asyncio.run(kept.add("model", "a.onnx", b"ab", Reader()))


def test_a_worker_that_is_late_or_dies_is_ended_and_begun_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TWIN_PATIENCE", "1")
    silent = Worker(tmp_path, 0, (sys.executable, "-c", "import sys; sys.stdin.read()"))
    with pytest.raises(WorkerError, match="more time than is given"):
        silent.ask({"do": "predict"}, 0.01)
    dying = Worker(tmp_path, 0, (sys.executable, "-c", "raise SystemExit"))
    for _ in range(2):
        with pytest.raises(WorkerError, match=r"more memory .* or ended its process"):
            dying.ask({"do": "predict"}, 600)
    greedy = Worker(tmp_path, 1 << 26, reads_only=True)
    monkeypatch.setenv("TWIN_PATIENCE", "100")
    place = tmp_path / ("a" * 64)
    place.mkdir()
    with (place / "large.tflite").open("wb") as file:
        file.truncate(1 << 28)  # as much as is read of a model
    answer = greedy.ask({"do": "model", "name": "upload:" + place.name}, 600)
    assert answer["refused"] == "takes more memory than is given to it"
    assert "accepted" in greedy.ask({"do": "model", "name": "upload:" + "b" * 64}, 600)["refused"]
    for one in (silent, dying, greedy):
        one.close()


def test_a_lost_worker_is_an_answer_and_the_next_request_is_served(client, service) -> None:
    for worker in service.pool.workers:
        if worker._process is not None:
            worker._process.kill()
            worker._process.wait()
    assert ask(client, "predict", state=KWS)[0] == 200
    assert len(service.pool.workers) == pools.WORKERS


@pytest.mark.parametrize(("method", "path", "headers", "content", "status"), [
    ("GET", "/", {"host": "evil.example"}, None, 421),
    ("GET", "/", {"host": "localhost.evil.example"}, None, 421),
    ("GET", "/", {"host": "192.0.2.1"}, None, 421),
    ("GET", "/", {"host": "[::1].evil.com"}, None, 400),
    ("GET", "/", {"host": "localhost:80@evil.com"}, None, 400),
    ("GET", "/", {"host": "::1"}, None, 400),
    ("GET", "/", {"host": "localhost:"}, None, 200),
    ("GET", "/", {"host": "[::1]:1"}, None, 200),
    ("POST", "/api/predict", [("origin", "http://localhost"), ("origin", "http://localhost")],
     b"{}", 400),
    ("POST", "/api/predict", [("origin", "http://evil.example"), ("origin", "http://localhost")],
     b"{}", 400),
    ("POST", "/api/predict", {"origin": "http://evil.example"}, b"{}", 403),
    ("POST", "/api/predict", {"origin": "http://localhost:1"}, b"{}", 403),
    ("POST", "/api/predict", {"origin": "null"}, b"{}", 403),
    ("POST", "/api/predict", {"sec-fetch-site": "cross-site"}, b"{}", 403),
    ("POST", "/api/predict", {"content-type": "text/plain"}, b"{}", 415),
    ("POST", "/api/predict", {}, b"[" * (LARGEST_BODY + 1), 413),
    ("POST", "/api/predict", {"content-length": "9" * 20}, b"{}", 413),
    ("POST", "/api/predict", {}, b"{" * 5000, 422),
    ("POST", "/api/predict", {}, b"\xff", 400),
    ("POST", "/api/predict", {"origin": "http://localhost"}, b"{}", 422),
    ("PUT", "/api/predict", {}, b"{}", 405),
    ("GET", "/api/predict", {}, None, 405),
    ("GET", "/../pyproject.toml", {}, None, 404),
    ("GET", "/%2e%2e/pyproject.toml", {}, None, 404),
    ("GET", "/live.html", {}, None, 404),
    ("GET", "/docs", {}, None, 404),
    ("GET", "/?" + "a" * 5000, {}, None, 414),
    ("GET", "/", {}, None, 200),
    ("GET", "/", {"host": "127.0.0.1:8787"}, None, 200),
])
def test_who_may_ask_and_how_much(client, method, path, headers, content, status) -> None:
    lines = [*headers.items()] if isinstance(headers, dict) else headers
    kind = [] if "content-type" in dict(lines) else [("content-type", "application/json")]
    answer = client.request(method, path, headers=lines + kind, content=content)
    assert answer.status_code == status, answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers


def test_a_body_of_unknown_length_is_read_no_further_than_it_may_have(client) -> None:
    sent = []

    def pour():
        for _ in range(1000):
            sent.append(1)
            yield b" " * 1024

    answer = client.post("/api/predict", content=pour(),
                         headers={"content-type": "application/json"})
    assert answer.status_code == 413
