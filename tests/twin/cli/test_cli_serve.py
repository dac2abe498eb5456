"""`twin serve`: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import twin
from twin.api.live import server
from twin.api.live.app import Service
from twin.cli import app


@pytest.mark.parametrize(("words", "said"), [
    (("--port", "TAKEN"), "is taken; accepted: another, or 0 for any free one"),
    (("--port", "70000"), "accepted: 0 to 65,535"), (("--port", "-1"), "a number from 0"),
    (("--host", "no host"), "accepted: an address of this machine"),
    (("nowhere.tflite", "--port", "0"), "nowhere.tflite: No such file"),
    (("nothing", "--port", "0"), "model 'nothing'"),
    (("kws", "-b", "../x", "--port", "0"), "board '../x'"),
    (("kws", "--set", "a b=1", "--port", "0"), "set.a b"),
])
def test_what_cannot_be_served_is_refused_in_a_line(words, said) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = CliRunner().invoke(app, ["serve", *(port if word == "TAKEN" else word
                                                    for word in words)])
    assert ended.exit_code == 2 and said in ended.stderr and ended.stdout == ""
    assert ended.stderr.startswith("error: ") and len(ended.stderr.splitlines()) == 1


def test_without_its_extra_it_says_which(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ended = CliRunner().invoke(app, ["serve", "--port", "0"])
    assert ended.exit_code == 5 and "extra 'serve'" in ended.stderr


def test_it_serves_until_interrupted_and_leaves_nothing(tmp_path) -> None:
    twin.export_model("ad", tmp_path / "mine.tflite")
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "serve", str(tmp_path / "mine.tflite"), "--port", "0",
         "--host", "0.0.0.0", "--set", "clocks.cpu.frequency_hz=80MHz"],
        cwd=Path(twin.__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=None)
    try:
        told = process.stdout.readline().split()
        address = told[-1]
        assert told[:2] == ["serving", "at"] and address.startswith("http://127.0.0.1:")
        assert address.endswith("&set=clocks.cpu.frequency_hz=80MHz")
        assert "?model=upload:" in address and "&board=nucleo_l4r5zi" in address
        with urllib.request.urlopen(address) as answer:
            assert b"Live what-if" in answer.read() and "server" not in answer.headers
        bare, _, query = address.partition("?")
        with urllib.request.urlopen(bare + "api/catalogue") as answer:
            assert json.load(answer)["start"] == f"?{query}"  # what the bare address shows
        state = {"model": address.partition("model=")[2].partition("&")[0],
                 "board": "nucleo_l4r5zi"}
        request = urllib.request.Request(
            bare + "api/predict", json.dumps({"state": state}).encode(),
            {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["model"] == "mine"
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(urllib.request.Request(address, headers={"host": "evil.org"}))
    finally:
        process.send_signal(signal.SIGINT)
        left, said = process.communicate()
    assert process.returncode == 0 and left == ""
    assert "whoever reaches this machine" in said and said.splitlines()[-1] == "ended"


def test_an_interrupt_before_the_server_begins_ends_it_in_silence(monkeypatch, recwarn) -> None:
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.asyncio, "run", interrupt)
    server.run(Service(), server.listen("127.0.0.1", 0), "127.0.0.1", lambda: None)
    assert not [one for one in recwarn if "never awaited" in str(one.message)]
