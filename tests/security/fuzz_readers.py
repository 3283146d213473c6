"""Fuzzing guided by coverage: the readers that are Python all through, for as long as one likes.

`pip install -c constraints.txt -e '.[fuzz]'`, then `python tests/security/fuzz_readers.py "study file" --runs 100000`.
It begins with the valid file of `test_readers.py` and keeps what reaches new lines. Anything but a result or one
sentence ends it with exit code 77, the stack, and the file, which is kept in the folder --found. No part of `make
test`: what it finds becomes a test there.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
GUIDING = [
    "vseg.study",
    "vseg.study.toml_errors",
    "vseg.data.tables",
    "vseg.data.file_reading",
    "vseg.data.importers",
    "tomllib",
    "json",
]

with atheris.instrument_imports(include=GUIDING):
    import test_readers

    import vseg.data.tables  # noqa: F401  # vseg.load would bring it too late
    from vseg.data import importers
    from vseg.data.layout import Grid
    from vseg.errors import VsegError, VsegWarning

PURE = ("study file", "CSV", "jsPsych JSON", "jsPsych CSV")
LARGEST_BYTES = 4096


def read(reader: test_readers.Reader, path: Path) -> object:
    """Read a file; skip writing the imported folder, which takes a hundred times as long."""
    if reader.read is not test_readers.imported:
        return reader.read(path)
    return importers.import_trials([path], columns=["same=response:f"], layout=Grid(4), image_size=(640, 480))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", choices=PURE)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--found", type=Path, default=Path("fuzzed"))
    given = parser.parse_args()
    (reader,) = (each for each in test_readers.READERS if each.name == given.reader)
    folder = Path(tempfile.mkdtemp(prefix="vseg-fuzz-"))  # libFuzzer ends the process itself
    seeds, path = folder / "seeds", folder / f"file{reader.suffix}"
    for each in (seeds, given.found):
        each.mkdir(parents=True, exist_ok=True)
    (seeds / "valid").write_bytes(reader.valid(folder))
    words = "\n".join(
        '"' + "".join(f"\\x{b:02x}" for b in word) + '"' for word in test_readers.NASTY if len(word) < 60
    )
    (folder / "words").write_text(words)
    warnings.simplefilter("ignore", VsegWarning)

    def tried(content: bytes) -> None:
        path.write_bytes(content)
        try:
            assert read(reader, path) is not None
        except VsegError as error:
            test_readers.assert_one_sentence(error)

    options = [f"-runs={given.runs}", f"-max_len={LARGEST_BYTES}", f"-timeout={test_readers.LIMIT_S}"]
    options += [f"-dict={folder / 'words'}", f"-artifact_prefix={given.found}/", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *options, str(seeds)], tried)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
