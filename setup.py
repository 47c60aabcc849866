"""Compiles what has a compiled twin (every .pyx under src). Everything else is in pyproject.toml.

The extensions are optional: without a C compiler, or Cython, the package installs all the same and uses the pure twins.
`python setup.py build_ext --inplace` rebuilds them in a checkout.
"""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")


class OptionalBuild(build_ext):
    """One line, instead of an error, when an extension cannot be compiled."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            _say_pure(error)

    def build_extension(self, extension: Extension) -> None:
        try:
            super().build_extension(extension)
        except Exception as error:
            _say_pure(error)

    def copy_extensions_to_source(self) -> None:
        # An in-place build copies all of them, and those that failed are not there.
        self.extensions = [e for e in self.extensions if Path(self.get_ext_fullpath(e.name)).exists() or self._built(e)]
        super().copy_extensions_to_source()

    def _built(self, extension: Extension) -> bool:
        return (Path(self.build_lib) / self.get_ext_filename(extension.name)).exists()


def _say_pure(error: object) -> None:
    print(f"barnabas: the C extensions were not built ({error}); the pure Python twins are used", file=sys.stderr)


def _extensions() -> list[Extension]:
    found = sorted(SOURCE.glob("barnabas/**/*.pyx"))
    try:
        from Cython.Build import cythonize

        extensions = [
            Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [path.as_posix()], optional=True)
            for path in found
        ]
        return list(cythonize(extensions, include_path=[SOURCE.as_posix()], language_level=3, quiet=True))
    except Exception as error:
        _say_pure(error)
        return []


setup(ext_modules=_extensions(), cmdclass={"build_ext": OptionalBuild})
