"""Compiles what has a compiled twin (every .pyx under src). Everything else is in pyproject.toml.

The extensions are optional: without a C compiler, or Cython, the package installs all the same and uses the pure twins.
`python setup.py build_ext --inplace` rebuilds them in a checkout.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
# Debug symbols would make the files three times as large; -O2, as some Pythons have it, would keep the vectors of the
# checksum in memory instead of registers.
COMPILER_OPTIONS = [] if sys.platform == "win32" else ["-g0", "-O3"]


class OptionalBuild(build_ext):
    """Reports one line, instead of an error, when extensions cannot be compiled."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        self.failed: dict[str, Exception] = {}
        try:
            super().run()
        except Exception as error:
            self.failed["all"] = error
        if self.failed:
            _say_pure(", ".join(self.failed), next(iter(self.failed.values())))

    def build_extension(self, extension: Extension) -> None:
        try:
            super().build_extension(extension)
        except Exception as error:
            self.failed[extension.name] = error

    def copy_extensions_to_source(self) -> None:
        # The in-place build would stumble over those that are not there to be copied.
        self.extensions = [extension for extension in self.extensions if extension.name not in self.failed]
        super().copy_extensions_to_source()


def _say_pure(names: str, error: Exception) -> None:
    print(f"barnabas: not compiled, pure Python is used instead: {names} ({type(error).__name__})", file=sys.stderr)


def _extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize

        headers = [header.as_posix() for header in SOURCE.glob("barnabas/**/*.h")]
        extensions = [
            Extension(
                ".".join(path.relative_to(SOURCE).with_suffix("").parts),
                [path.as_posix()],
                depends=headers,
                extra_compile_args=COMPILER_OPTIONS,
            )
            for path in sorted(SOURCE.glob("barnabas/**/*.pyx"))
        ]
        return list(cythonize(extensions, include_path=[SOURCE.as_posix()], language_level=3, quiet=True))
    except Exception as error:
        _say_pure("all", error)
        return []


setup(ext_modules=_extensions(), cmdclass={"build_ext": OptionalBuild})
