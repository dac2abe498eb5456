"""Adds firmware's sources and the JSON Schemas to a wheel, and compiles the simulations' loops.

All else stands in pyproject.toml.
"""

import os
import subprocess
import sys
from pathlib import Path
from sysconfig import get_platform

from setuptools import setup
from setuptools.command.build_py import build_py


class Build(build_py):
    """Copies firmware/ beside the package and writes twin/schema; an editable install has both."""

    def run(self):
        super().run()
        os.environ["TWIN_FILES"] = ""  # a build keeps nothing in the user's folders
        if not self.editable_mode:
            self.copy_tree("firmware", f"{self.build_lib}/twin/firmware")
            self.spawn([sys.executable, "-m", "twin.reports.documents",
                        f"{self.build_lib}/twin/schema"])
        root = "." if self.editable_mode else self.build_lib
        command = [sys.executable, "-m", "hwmodels.kernels", Path(root, "hwmodels", "kernels")]
        if subprocess.run(command, check=False).returncode:
            print("note: loops are not compiled, they run as plain Python")


# The library is of one platform and of no Python's version: setuptools takes it for data.
setup(cmdclass={"build_py": Build}, options={"bdist_wheel": {"plat_name": get_platform()}})
