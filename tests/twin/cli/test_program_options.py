"""Options of `twin predict --elf` that do not fit: what is said, before anything runs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import twin
from twin.api.requests import Priced
from twin.cli import app, predict


@pytest.mark.parametrize(("words", "told"), [
    (["kws", "--elf", "app.elf"], "MODEL: not with --elf; accepted: --elf FILE -b BOARD"),
    (["kws", "--call", "main"], "--call: not with a network; accepted: beside --elf FILE"),
    (["--call", "main"], "MODEL is missing"),
    (["kws", "--csv", "out/a.csv"], "accepted: a folder, such as out/a; or out/a.csv/"),
    (["--elf", "app.elf", "--from", "f", "--csv", "a.csv"], "--csv a.csv: is named as a file"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=-1"], "-1 is not of 32 bits"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=0x1ffffffff"], "0 to 0xffffffff"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=x"], "0xADDRESS=VALUE is expected"),
])
def test_options_that_do_not_fit_say_what_would(words, told):
    result = CliRunner().invoke(app, ["predict", *words, "-b", "nucleo_l4r5zi"])
    assert result.exit_code == 2 and told in " ".join(result.stderr.split())


def test_files_are_there_when_a_reader_closes_the_pipe(monkeypatch, tmp_path):
    def close(*_):
        raise BrokenPipeError

    monkeypatch.setattr(predict.Shown, "show", close)
    words = ["predict", "ad", "-b", "nucleo_l4r5zi", "--csv", str(tmp_path / "net"),
             "--export", str(tmp_path / "net.mlia.json")]
    assert CliRunner().invoke(app, words).exit_code == 141
    assert (tmp_path / "net/bill.csv").exists() and (tmp_path / "net.mlia.json").exists()
    with pytest.raises(BrokenPipeError):
        predict.predict_program(
            twin.deploy("ad", "nucleo_l4r5zi"), Priced(), predict.Shown(),
            predict.Files(csv_folder=str(tmp_path / "program")))
    assert (tmp_path / "program/bill.csv").exists()
