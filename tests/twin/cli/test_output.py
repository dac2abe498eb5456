"""What text from outside says to a terminal is written out, wherever it is printed."""

import io

import pytest
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from twin.cli import app
from twin.cli.output import PIPED_COLUMNS, note_written, open_console, show, warn

STEERING = "\x1b]0;title\x07\x1b[2J\u202eeman"


class Terminal(io.StringIO):
    """Claims to be one, so that styles are written."""

    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_name_steers_no_terminal(monkeypatch, kind):
    out = kind()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm")
    table = Table("layer")
    table.add_row(STEERING)
    table.add_row(Text("bold", style="bold"))
    show(open_console(), table)
    told = out.getvalue()
    assert "\x1b]0" not in told and "\x1b[2J" not in told and "\u202e" not in told
    assert "\\x1b]0;title\\x07" in told.replace("\n", "") or "\\x1b" in told
    assert ("\x1b[1m" in told) == (kind is Terminal)


def test_warnings_and_paths_steer_none(capsys):
    warn([STEERING])
    note_written(STEERING)
    told = capsys.readouterr().err
    assert "\x1b" not in told and told.count("\\x1b]0;title") == 2


def test_warnings_beyond_three_are_counted(capsys):
    for each in ("abc", "abcd", "abcde"):
        warn(each)
        more = [f"{len(each) - 3} more: --json lists all warnings"] if len(each) > 3 else []
        assert capsys.readouterr().err.splitlines()[3:] == more


@pytest.mark.parametrize(("asked", "width"), [
    ("80", 80), ("3", 20), ("wide", PIPED_COLUMNS), ("", PIPED_COLUMNS)])
def test_piped_output_is_as_wide_as_columns_asks(monkeypatch, asked, width):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", asked)
    assert open_console().width == width


@pytest.mark.parametrize("asked", [
    ("predict", "--elf", "own", "-b", "nucleo_l4r5zi", "--flamegraph", "same"),
    ("measure", "own", "-b", "host", "--flamegraph", "own"),
    ("predict", "kws", "-b", "own", "--plot", "same"),
    ("report", "own", "--output", "same")])
def test_what_a_verb_reads_is_not_written_over(tmp_path, monkeypatch, asked):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").write_text("mine")
    (tmp_path / "same").symlink_to("own")
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2 and (tmp_path / "own").read_text() == "mine"
    assert f"{asked[-2]} {asked[-1]}: is own, which {asked[0]} reads; accepted" in result.stderr


def test_warnings_fold_at_words_on_a_terminal_alone(monkeypatch, capsys):
    warn(["a word " * 20])
    assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    warn(["a word " * 20])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 40 and lines[1].startswith("  ")
