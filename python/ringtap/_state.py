"""`ringtap.state`: the tables of a state."""

from collections.abc import Mapping
from os import fspath
from pathlib import Path

from ._ringtap import Error, Run, state_table, state_tables  # type: ignore[import-not-found]


def state(source):
    """The tables of a state by name, such as "pairs" and "attempts": a mapping of `Table`s, each of which is made when it is taken.

    `source` is the path of a state that `ringtap monitor --state` or `ringtap merge --state` wrote, a state as bytes, or a run
    that has one.
    """
    if isinstance(source, Run):
        if source.state is None:
            raise Error("a run without a state has no tables")
        return _State(source.state)
    return _State(source if isinstance(source, bytes) else Path(fspath(source)).read_bytes())


class _State(Mapping):
    def __init__(self, state):
        self._state, self._names = state, state_tables(state)

    def __getitem__(self, name):
        return state_table(self._state, name)

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<ringtap.state: {', '.join(self._names)}>"
