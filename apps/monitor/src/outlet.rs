//! Where flow records leave: each worker gathers its own and takes turns with the others at the one who hears them.
//!
//! ```text
//! worker 0 ─ record record record … ─┐
//!                                    ├─ whose turn it is ─▶ listener: files, collectors
//! worker 1 ─ record record … ────────┘
//! ```
//!
//! They do not go through the merger: a record fills three cache lines, and to hand those to another core costs more
//! than to encode them where they are.
//!
//! Invariant: records of one worker are heard in their order. A worker that finds the listener busy goes on, and waits
//! only when it has gathered [`MOST`]; the listener waits for no worker.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use ringtap_flow::FlowRecord;

use crate::OnRecord;

/// Records after which a worker asks for its turn.
const TURN: usize = 256;

/// Records that a worker gathers at the most.
const MOST: usize = 8 * TURN;

/// A worker's way to the listener, if there is one.
#[derive(Default)]
pub(crate) struct Outlet {
    listener: Option<Arc<Mutex<OnRecord>>>,
    gathered: Vec<FlowRecord>,
}

impl Outlet {
    pub(crate) fn new(listener: Option<Arc<Mutex<OnRecord>>>) -> Self {
        let room = if listener.is_some() { MOST } else { 0 };
        Self { listener, gathered: Vec::with_capacity(room) }
    }

    #[inline]
    pub(crate) fn take(&mut self, record: &FlowRecord) {
        if self.listener.is_some() {
            self.gathered.push(*record);
            if self.gathered.len().is_multiple_of(TURN) {
                self.take_turn(self.gathered.len() >= MOST);
            }
        }
    }

    /// Hands over what is left.
    pub(crate) fn empty(&mut self) {
        if !self.gathered.is_empty() {
            self.take_turn(true);
        }
    }

    fn take_turn(&mut self, waits: bool) {
        let Some(listener) = &self.listener else { return };
        let hear: Option<MutexGuard<'_, OnRecord>> = match listener.try_lock() {
            Ok(hear) => Some(hear),
            Err(TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(TryLockError::WouldBlock) if waits => {
                Some(listener.lock().unwrap_or_else(|poison| poison.into_inner()))
            }
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut hear) = hear {
            self.gathered.iter().for_each(&mut *hear);
            self.gathered.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringtap_flow::{FlowKey, IpVersion};

    fn record(number: u16) -> FlowRecord {
        FlowRecord::new(FlowKey {
            version: IpVersion::V4,
            src: [0; 16],
            dst: [0; 16],
            src_port: number,
            dst_port: 0,
            protocol: 17,
        })
    }

    fn listener() -> (Arc<Mutex<OnRecord>>, Arc<Mutex<Vec<u16>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        let hear: OnRecord = Box::new(move |r| hears.lock().unwrap().push(r.key.src_port));
        (Arc::new(Mutex::new(hear)), heard)
    }

    #[test]
    fn all_are_heard_in_order_also_after_the_listener_was_busy() {
        let (listener, heard) = listener();
        let mut outlet = Outlet::new(Some(Arc::clone(&listener)));
        (0..100).for_each(|number| outlet.take(&record(number)));
        assert!(heard.lock().unwrap().is_empty(), "one at a time would be too dear");
        let busy = listener.lock().unwrap();
        (100..1_000).for_each(|number| outlet.take(&record(number)));
        drop(busy);
        assert_eq!(outlet.gathered.len(), 1_000);
        (1_000..1_100).for_each(|number| outlet.take(&record(number)));
        assert_eq!(outlet.gathered.len(), 1_100 - 1_024);
        outlet.empty();
        assert_eq!(*heard.lock().unwrap(), (0..1_100).collect::<Vec<_>>());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of what two threads do")]
    fn it_waits_rather_than_gather_without_bound() {
        let (listener, heard) = listener();
        let busy = listener.lock().unwrap();
        let worker = std::thread::spawn({
            let listener = Arc::clone(&listener);
            move || {
                let mut outlet = Outlet::new(Some(listener));
                (0..3 * MOST as u16).for_each(|number| outlet.take(&record(number)));
                outlet.empty();
                outlet.gathered.capacity()
            }
        });
        drop(busy);
        assert_eq!(worker.join().unwrap(), MOST);
        assert_eq!(heard.lock().unwrap().len(), 3 * MOST);
    }
}
