"""Adds firmware's sources and the JSON Schemas to a wheel; all else stands in pyproject.toml."""

import sys

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFirmware(build_py):
    """Copies firmware/ beside the package and writes twin/schema; an editable install has both."""

    def run(self):
        super().run()
        if not self.editable_mode:
            self.copy_tree("firmware", f"{self.build_lib}/twin/firmware")
            self.spawn([sys.executable, "-m", "twin.reports.documents",
                        f"{self.build_lib}/twin/schema"])


setup(cmdclass={"build_py": BuildWithFirmware})
