//! Detects that a broker limits the rate of this program, by a quota.
//!
//! The answer of a broker over quota has the result of the batch, and a time for which the broker reads nothing more.
//! rskafka 0.6 does not read the result: after this time it sends the batch again, perhaps over quota again, without end
//! and without an error. The only sign is an event of `tracing`, which is emitted while the request is polled.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    /// The number of answers over quota that were not read in this thread.
    static UNREAD: Cell<u64> = const { Cell::new(0) };
}

/// Runs a request for sending a batch. `None`: the answer was over quota, so the batch was taken or not.
pub(crate) async fn unless_over_quota<F: Future>(request: F) -> Option<F::Output> {
    let mut request = pin!(request);
    poll_fn(|context| {
        let before = UNREAD.get();
        match request.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if UNREAD.get() != before => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Counts the events in [`UNREAD`].
pub(crate) struct Watch;

impl Subscriber for Watch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "rskafka::backoff" && metadata.fields().field("throttle").is_some()
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut OfBatches);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Requests other than those with batches may be repeated.
struct OfBatches;

impl Visit for OfBatches {
    fn record_str(&mut self, field: &Field, value: &str) {
        if (field.name(), value) == ("request_name", "produce") {
            UNREAD.set(UNREAD.get() + 1);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;

    use super::*;

    /// The outcome of a request during which the library emits this event and then sleeps.
    fn after(request_name: &str) -> Option<()> {
        let request = unless_over_quota(async {
            tracing::info!(target: "rskafka::backoff", throttle = 7, request_name, "throttled");
            pending::<()>().await;
        });
        let sleep = std::time::Duration::from_millis(1);
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        tracing::subscriber::with_default(Watch, || {
            runtime
                .block_on(async { tokio::time::timeout(sleep, request).await.unwrap_or(Some(())) })
        })
    }

    #[test]
    fn a_batch_over_quota_is_not_waited_for_but_other_requests_are() {
        assert_eq!(after("produce"), None);
        assert_eq!(after("metadata"), Some(()));
    }
}
