//! The runtime of the connections: tasks run in the caller's thread, while it waits.

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;
use tracing::Dispatch;

use super::quota::Watch;
use crate::shared::{Shared, now};

/// One wait, after which the end is checked.
const SLICE: Duration = Duration::from_millis(50);

/// A runtime without threads.
pub(crate) struct Runtime {
    /// `None` while it is dropped.
    tokio: Option<tokio::runtime::Runtime>,
    watch: Dispatch,
}

impl Runtime {
    /// Creates a runtime.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new() -> io::Result<Self> {
        let tokio = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self { tokio: Some(tokio), watch: Dispatch::new(Watch) })
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
                match timeout(SLICE, future.as_mut()).await {
                    Ok(output) => return Some(output),
                    Err(_) if shared.over() || now() >= end => return None,
                    Err(_) => {}
                }
            }
        };
        let tokio = self.tokio.as_ref()?;
        tracing::dispatcher::with_default(&self.watch, || tokio.block_on(slices))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A name that is still being resolved is not waited for.
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_background();
        }
    }
}
