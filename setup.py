"""Adds firmware's sources and the JSON Schemas to a wheel, and compiles the simulations' loops.

All else stands in pyproject.toml.
"""

import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

KERNELS = Path("hwmodels", "kernels")


class Build(build_py):
    """Copies firmware/ beside the package and writes twin/schema; an editable install has both."""

    def run(self):
        super().run()
        if not self.editable_mode:
            self.copy_tree("firmware", f"{self.build_lib}/twin/firmware")
            self.spawn([sys.executable, "-m", "twin.reports.documents",
                        f"{self.build_lib}/twin/schema"])
        compile_loops(KERNELS if self.editable_mode else Path(self.build_lib, KERNELS))


def compile_loops(folder):
    """Compile the loops where that can be done; elsewhere they run as plain Python."""
    print("compiling simulation loops: about a minute", file=sys.stderr, flush=True)
    if subprocess.run([sys.executable, "-m", "hwmodels.kernels", folder], check=False).returncode:
        print("simulation loops are not compiled: they run as plain Python, slowly",
              file=sys.stderr)


class Wheel(bdist_wheel):
    """A wheel of one platform, for any Python."""

    def get_tag(self):
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class WithLibrary(Distribution):
    """What setuptools takes for a package of one platform."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=WithLibrary)
