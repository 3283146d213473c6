"""Write the demonstration's report in a child process of the server: `python -m vseg.demo FOLDER SEED`.

The parent keeps standard input open; the process exits when it ends.
"""

import sys

from vseg._support.subprocesses import exit_with_parent
from vseg.demo import run_demo

if __name__ == "__main__":
    exit_with_parent()
    run_demo(sys.argv[1], seed=int(sys.argv[2]))
