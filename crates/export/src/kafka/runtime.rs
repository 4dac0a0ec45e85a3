//! The runtime of the connections: tasks run in the caller's thread, while it waits.

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::shared::{Shared, now};

/// One wait, after which the end is checked.
const SLICE: Duration = Duration::from_millis(50);

/// How often tasks get their turn, without waiting: to begin, to write, to read an answer, to return it.
const TURNS: usize = 4;

/// A runtime without threads. `None` while it is dropped.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Creates a runtime.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Some(Builder::new_current_thread().enable_io().enable_time().build()?)))
    }

    /// Runs `future`. `None`: it took longer than the limit, or the output is not waited for any more.
    pub(crate) fn wait<F: Future>(
        &self,
        limit: Duration,
        shared: &Shared,
        future: F,
    ) -> Option<F::Output> {
        let end = now() + limit;
        let slices = async {
            let mut future = pin!(future);
            loop {
                let left = end.saturating_duration_since(now());
                match timeout(left.min(SLICE), future.as_mut()).await {
                    Ok(output) => return Some(output),
                    Err(_) if shared.over() || now() >= end => return None,
                    Err(_) => {}
                }
            }
        };
        self.0.as_ref()?.block_on(slices)
    }

    /// Runs tasks that need not wait.
    pub(crate) fn turn(&self) {
        if let Some(tokio) = &self.0 {
            tokio.block_on(async {
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// While this is held, tasks can be started and dropped.
    pub(crate) fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        self.0.as_ref().map(tokio::runtime::Runtime::enter)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A name that is still being resolved is not waited for.
        if let Some(tokio) = self.0.take() {
            tokio.shutdown_background();
        }
    }
}
