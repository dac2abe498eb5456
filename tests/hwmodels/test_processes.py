"""Processes of this Python run nothing that lies where they were started."""

import subprocess

from hwmodels.processes import command_of, environment


def test_a_module_beside_a_strangers_file_is_not_run(tmp_path, monkeypatch) -> None:
    (tmp_path / "json.py").write_text("print('planted')")
    (tmp_path / "twin").mkdir()
    (tmp_path / "twin" / "__init__.py").write_text("print('planted')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done = subprocess.run(command_of("twin.studies.counted"), input=b"", capture_output=True,
                          check=False, env=environment())
    assert b"planted" not in done.stdout and b"refused" in done.stdout
