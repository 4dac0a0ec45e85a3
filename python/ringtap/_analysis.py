"""`ringtap.analysis`: a function that runs over the batches of a stream, in a pool of threads or processes."""

import os
import signal
from collections import deque
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

from ._ringtap import Error

# Batches in the pool, for each worker: one that it has, and one that waits.
_IN_POOL = 2


def analysis(function, stream, *, workers=None, processes=False):
    """Call a function with each batch of a stream, in a pool, and iterate over the results in the order of the batches.

    `stream` is that of `ringtap.stream`. The pool has so many `workers`, by default one for each core: threads, or processes with
    `processes=True`; then the function belongs to a module, and its results can be pickled. At most two batches a worker are in
    the pool, and the stream waits.

    If the function raises an exception, `ringtap.Error` has the number of the batch, from 1, and the exception is its cause; a
    process that is killed is an error, too. After an error, Ctrl-C or a `break` no further batch is read, and the pool ends as
    soon as the calls that run have ended.
    """
    workers = os.cpu_count() or 1 if workers is None else workers
    pool = _processes(workers) if processes else ThreadPoolExecutor(workers)
    calls = deque()
    try:
        for number, batch in enumerate(stream, 1):
            calls.append((number, pool.submit(function, batch)))
            while calls and (calls[0][1].done() or len(calls) == _IN_POOL * workers):
                yield _result(*calls.popleft())
        while calls:
            yield _result(*calls.popleft())
    except BrokenExecutor as error:
        raise Error("a process of the pool was killed, perhaps for lack of memory: use fewer workers") from error
    finally:
        # An error of the run hides no other.
        with suppress(Error):
            stream.close()
        pool.shutdown(cancel_futures=True)


def _processes(workers):
    """Processes that do not share the threads of a run, and leave Ctrl-C to the caller."""
    ignore = (signal.SIGINT, signal.SIG_IGN)
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=signal.signal, initargs=ignore)


def _result(number, call):
    try:
        return call.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        raise Error(f"batch {number}: {type(error).__name__}: {error}") from error
