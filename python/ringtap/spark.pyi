from os import PathLike
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import Run

__all__ = ["flows", "merge_stream", "monitor"]

_Path = Union[str, PathLike[str]]
_Scalar = Union[str, int, float, PathLike[str]]

# Those of pyspark, which this package does not need for anything else.
_SparkSession = Any
_DataFrame = Any

def monitor(
    spark: _SparkSession,
    paths: Iterable[_Path],
    **flags: Union[bool, _Scalar, Sequence[_Scalar], None],
) -> Run:
    """Monitor captures in parallel and merge their states."""

def flows(
    spark: _SparkSession,
    paths: Iterable[_Path],
    *,
    flows: Optional[str] = None,
    columns: Optional[Sequence[str]] = None,
    **flags: Union[bool, _Scalar, Sequence[_Scalar], None],
) -> _DataFrame:
    """The flow records of captures, which are read in parallel: a DataFrame."""

def merge_stream(spark: _SparkSession, options: Mapping[str, Any]) -> _DataFrame:
    """Merge the states that probes send to a topic of Kafka into one report for each interval: a streaming DataFrame."""
