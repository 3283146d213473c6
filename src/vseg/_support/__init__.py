"""Helpers that know nothing of vision.

atomic_files       files that are replaced in one step
blas               one BLAS thread where rounding or speed needs it
confidence         the confidence level of an interval
html_report        standalone HTML pages with figures
numba_cache        compile with numba, cache the machine code on disk
optional_imports   import packages of optional extras
palette            the colours of segments
progress           progress reports of long computations
seeds              the accepted kinds of random seed
subprocesses       start, limit, watch and kill child processes
text               counts with their noun, safe folder names
user_code          load functions from users' Python files
"""
