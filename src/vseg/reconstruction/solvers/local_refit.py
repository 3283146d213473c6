"""Refit after a few new answers: update only the rows they affect, and the rows affected by those."""

import numpy as np

from vseg._support.numba_cache import compiled
from vseg.reconstruction.solvers.row_updates import update_rows


@compiled
def refit_rows(p, tested, code, strength, penalty, disturbed, change, limit):
    """Update p in place from a queue of rows; return the number of row updates, at most `limit`.

    A row that moves by more than `change` queues its partners and neighbours.
    """
    start, partner, _, weight = tested
    n = p.shape[0]
    queue = np.empty(n, np.int64)
    queued = np.zeros(n, np.bool_)
    head, count, done = 0, 0, 0
    row = np.empty(1, np.int64)
    old = np.empty(p.shape[1])
    for i in disturbed:
        if not queued[i]:
            queue[count] = i
            queued[i] = True
            count += 1
    while count > 0 and done < limit:
        i = queue[head]
        head = (head + 1) % n
        count -= 1
        queued[i] = False
        row[0] = i
        old[:] = p[i]
        update_rows(p, tested, code, strength, penalty, 1.0, row)
        done += 1
        moved = 0.0
        for c in range(p.shape[1]):
            moved = max(moved, abs(p[i, c] - old[c]))
        if moved <= change:
            continue
        for e in range(start[i], start[i + 1]):
            j = np.int64(partner[e])
            if weight[e] > 0.0 and not queued[j]:
                queue[(head + count) % n] = j
                queued[j] = True
                count += 1
        if strength > 0.0:
            for e in range(penalty.start[i], penalty.start[i + 1]):
                j = np.int64(penalty.column[e])
                if not queued[j]:
                    queue[(head + count) % n] = j
                    queued[j] = True
                    count += 1
    return done


@compiled
def record_answers(start, used, partner, share, count, i, j, same):
    """Write answers into the rows of both locations; stop at the first row without a spare entry.

    Returns the number of answers written and of pairs not seen before.
    """
    new = 0
    for t in range(i.size):
        if used[i[t]] == start[i[t] + 1] - start[i[t]] or used[j[t]] == start[j[t] + 1] - start[j[t]]:
            return t, new
        for a, b in ((i[t], j[t]), (j[t], i[t])):
            end = start[a] + used[a]
            at = start[a]
            while at < end and partner[at] != b:
                at += 1
            if at == end:
                partner[at] = b
                share[at] = 0.0
                count[at] = 0.0
                used[a] += 1
                new += int(a < b)
            count[at] += 1.0
            share[at] += (same[t] - share[at]) / count[at]
    return i.size, new
