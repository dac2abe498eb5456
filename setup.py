"""Adds the firmware's sources to a wheel, as twin/firmware; all else stands in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFirmware(build_py):
    """Copies firmware/ beside the package; an editable install reads it where it is."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "twin", "firmware")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree("firmware", target)


setup(cmdclass={"build_py": BuildWithFirmware})
