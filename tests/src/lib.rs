//! The product seen from outside: see `tests/`.
