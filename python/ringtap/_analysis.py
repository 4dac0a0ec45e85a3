"""`ringtap.analysis`: a function that runs over the batches of a stream, in a pool of threads or processes."""

import os
import signal
from collections import deque
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

from ._ringtap import Error  # type: ignore[import-not-found]

# Batches in the pool, for each worker: one that it has, and one that waits.
_IN_POOL = 2


def analysis(function, stream, *, workers=None, processes=False):
    """Call a function with each batch of a stream, in a pool, and iterate over the results in the order of the batches.

    `stream` is that of `ringtap.stream`. The pool has `workers` threads, by default one for each core, or with `processes=True`
    processes; then the function belongs to a module, and its results can be pickled. The pool has at most two batches a worker;
    then the stream waits. A result comes when the next batch is there, or at the end.

    If the function raises an exception, `ringtap.Error` has the number of the batch, from 1, and the exception is its cause. A
    process that is killed is an error, too; that of the run is raised after the last result. After an error of a call, Ctrl-C or
    a `break` no further batch is read, and the pool ends as soon as the calls that run have ended.
    """
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    pool = _processes(workers) if processes else ThreadPoolExecutor(workers)
    calls, errors = deque(), []
    try:
        for number, batch in _numbered(stream, errors):
            calls.append((number, pool.submit(function, batch)))
            while calls and (calls[0][1].done() or len(calls) == _IN_POOL * workers):
                yield _result(*calls.popleft())
        while calls:
            yield _result(*calls.popleft())
        if errors:
            raise errors[0]
    except BrokenExecutor as error:
        raise Error("a process of the pool was killed, perhaps for lack of memory: use fewer workers") from error
    finally:
        # An error of the run hides no other.
        with suppress(Error):
            stream.close()
        pool.shutdown(cancel_futures=True)


def _numbered(stream, errors):
    """The batches with their numbers. The error of the run, which follows the last batch, is added to `errors`."""
    try:
        yield from enumerate(stream, 1)
    except Error as error:
        errors.append(error)


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
