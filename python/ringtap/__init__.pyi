from os import PathLike
from typing import Any, Callable, Dict, Iterable, Iterator, Literal, Mapping, Optional, Sequence, TypeVar, Union, final

__all__ = ["Error", "Run", "Stream", "Table", "analysis", "merge", "monitor", "read_state", "state", "stream"]

_Path = Union[str, PathLike[str]]
_Scalar = Union[str, int, float, PathLike[str]]
_Result = TypeVar("_Result")

class Error(Exception):
    """A run that could not start, or that failed: the message of the command ``ringtap monitor``."""

    run: Optional[Run]
    """The run as far as it went, or None if it did not finish."""

    errors: Dict[str, str]
    """Only of ``ringtap.spark.monitor``: the errors by capture."""

@final
class Table:
    """Flow records, or the rows of a state: a table for every library that reads Arrow streams."""

    def __new__(cls, bytes: bytes) -> Table: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Run:
    """The result of a run."""

    def __new__(
        cls, report: dict[str, Any], flows: Optional[Table], state: Optional[bytes], warnings: list[str]
    ) -> Run: ...
    @property
    def report(self) -> dict[str, Any]:
        """The report, as in the JSON of ``ringtap monitor --report json``."""
    @property
    def flows(self) -> Optional[Table]:
        """The flow records; None with ``flows=False``, or if ``analyses`` has no flows."""
    @property
    def state(self) -> Optional[bytes]:
        """The state for ``merge``; None with ``state=False``, and if the flags leave it incomplete."""
    @property
    def warnings(self) -> list[str]:
        """The messages that the command prints as warnings."""

@final
class Stream(Iterator[Table]):
    """Flow records while the run goes on."""

    def __iter__(self) -> Stream: ...
    def __next__(self) -> Table: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None:
        """Stop the run, and wait for its end. The batches that were not read are lost."""
    @property
    def run(self) -> Optional[Run]:
        """The report of the run, once it has ended: a ``Run`` without flows."""

def stream(
    source: Union[_Path, Iterable[_Path]],
    *,
    every: Optional[str] = None,
    flows: Optional[str] = None,
    columns: Optional[Sequence[str]] = None,
    waiting: int = 4,
    strings: Literal["plain", "view"] = "plain",
    **flags: Union[bool, _Scalar, Sequence[_Scalar], None],
) -> Stream:
    """Iterate over the flow records of captures or of an interface while they are read.

    ``flows`` is an expression in the language of ``ringtap query``, ``every`` a time such as ``10s``.
    """

def analysis(
    function: Callable[[Table], _Result],
    stream: Stream,
    *,
    workers: Optional[int] = None,
    processes: bool = False,
) -> Iterator[_Result]:
    """Call a function with each batch of a stream, in a pool of threads or processes, and iterate over the results in the order of
    the batches.
    """

def monitor(
    source: Union[_Path, Iterable[_Path]],
    *,
    flows: Union[str, bool, None] = None,
    state: bool = True,
    strings: Literal["plain", "view"] = "plain",
    **flags: Union[bool, _Scalar, Sequence[_Scalar], None],
) -> Run:
    """Report flows, port scans, top talkers and traffic volumes of capture files.

    ``flows`` is as in ``stream``, or False for no flow records. The keyword arguments are the flags of ``ringtap monitor``, with
    underscores: ``interval="60s"``, ``top=5``.
    """

def merge(
    states: Iterable[Union[bytes, Run]],
    **flags: Union[bool, _Scalar, None],
) -> Run:
    """Merge states into one report, as ``ringtap merge`` does.

    The keyword arguments are its flags ``digest``, ``top``, ``scan_threshold``, ``udp_scan_threshold``, ``names`` and ``memory``.
    """

def state(source: Union[_Path, bytes, Run]) -> Mapping[str, Table]:
    """The tables of a state by name, such as "pairs" and "attempts"."""

def read_state(path: _Path) -> bytes:
    """Read a state that ``ringtap monitor --state`` or ``ringtap merge --state`` wrote."""
