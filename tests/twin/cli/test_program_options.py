"""Options of `twin predict --elf` that do not fit: what is said, before anything runs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from twin.cli import app


@pytest.mark.parametrize(("words", "told"), [
    (["kws", "--elf", "app.elf"], "MODEL: not with --elf; accepted: --elf bills the program"),
    (["kws", "--call", "main"], "--call: not with a network; accepted: beside --elf FILE"),
    (["--call", "main"], "MODEL is missing"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=-1"], "-1 is not of 32 bits"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=0x1ffffffff"], "0 to 0xffffffff"),
    (["--elf", "app.elf", "--call", "f", "--set-register", "r0=x"], "0xADDRESS=VALUE is expected"),
])
def test_options_that_do_not_fit_say_what_would(words, told):
    result = CliRunner().invoke(app, ["predict", *words, "-b", "nucleo_l4r5zi"])
    assert result.exit_code == 2 and told in " ".join(result.stderr.split())
