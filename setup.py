"""Adds firmware's sources and the JSON Schemas to a wheel; all else stands in pyproject.toml."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFirmware(build_py):
    """Copies firmware/ beside the package and writes twin/schema; an editable install has both."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "twin", "firmware")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree("firmware", target)
            sys.path.insert(0, str(Path(__file__).parent))
            from twin.reports.documents import write_schemas

            write_schemas(Path(self.build_lib, "twin", "schema"))


setup(cmdclass={"build_py": BuildWithFirmware})
