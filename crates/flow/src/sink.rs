//! The destinations of a worker's flow records and events.

use crate::{Event, FlowKey, FlowRecord, OpenFlow, Slice};

/// Receives the items of one worker, flow records unless stated otherwise. Each worker has its own sink, so no call takes
/// a lock.
pub trait RecordSink<I = FlowRecord>: Send {
    /// Receives an item: the record of a flow that ended, or of each part if flows are cut; an event.
    fn take(&mut self, item: &I);

    /// If flows are cut: the record of a flow that ended, after its parts.
    fn whole(&mut self, _item: &I) {}

    /// If flows are sliced: a flow begins with a packet of this key, time (nanoseconds since 1970) and length (octets of IP).
    fn begun(&mut self, _key: &FlowKey, _ts_ns: u64, _octets: u64) {}

    /// If flows are sliced: the packets of a flow in one interval, as [`Observer::slice`](crate::Observer::slice) gets them;
    /// if they are the whole flow, its record is the next.
    fn slice(&mut self, _item: &I, _of: Slice) {}

    /// The time of the worker: of its first packet before that is handled, and of each mark after the items that end
    /// there.
    fn time(&mut self, _time_ns: u64) {}

    /// The worker is at a mark: the sink may hand on its items, so that readers are up to date.
    fn mark(&mut self) {}

    /// No more packets follow; the remaining flows end now.
    fn ending(&mut self) {}

    /// Hands on all items. No call follows.
    fn finish(&mut self) {}
}

/// Both receive all items.
impl<I, A: RecordSink<I> + ?Sized, B: RecordSink<I> + ?Sized> RecordSink<I> for (Box<A>, Box<B>) {
    fn take(&mut self, item: &I) {
        self.0.take(item);
        self.1.take(item);
    }

    fn whole(&mut self, item: &I) {
        self.0.whole(item);
        self.1.whole(item);
    }

    fn begun(&mut self, key: &FlowKey, ts_ns: u64, octets: u64) {
        self.0.begun(key, ts_ns, octets);
        self.1.begun(key, ts_ns, octets);
    }

    fn slice(&mut self, item: &I, of: Slice) {
        self.0.slice(item, of);
        self.1.slice(item, of);
    }

    fn time(&mut self, time_ns: u64) {
        self.0.time(time_ns);
        self.1.time(time_ns);
    }

    fn mark(&mut self) {
        self.0.mark();
        self.1.mark();
    }

    fn ending(&mut self) {
        self.0.ending();
        self.1.ending();
    }

    fn finish(&mut self) {
        self.0.finish();
        self.1.finish();
    }
}

/// The sinks of one worker; each may be absent.
#[derive(Default)]
pub struct Sinks {
    /// For flow records.
    pub records: Option<Box<dyn RecordSink>>,
    /// For events.
    pub events: Option<Box<dyn RecordSink<Event>>>,
    /// For the live flows at the end, which the next run continues; without it they end as forced.
    pub open: Option<Box<dyn RecordSink<OpenFlow>>>,
}

impl Sinks {
    /// Adds a sink for flow records to that which exists.
    pub fn add_records(&mut self, sink: Box<dyn RecordSink>) {
        self.records = Some(match self.records.take() {
            Some(own) => Box::new((own, sink)),
            None => sink,
        });
    }

    /// Calls [`RecordSink::time`] of both.
    pub fn time(&mut self, time_ns: u64) {
        self.records.iter_mut().for_each(|sink| sink.time(time_ns));
        self.events.iter_mut().for_each(|sink| sink.time(time_ns));
    }

    /// Calls [`RecordSink::mark`] of both.
    pub fn mark(&mut self) {
        self.records.iter_mut().for_each(|sink| sink.mark());
        self.events.iter_mut().for_each(|sink| sink.mark());
    }

    /// Calls [`RecordSink::ending`] of both.
    pub fn ending(&mut self) {
        self.records.iter_mut().for_each(|sink| sink.ending());
        self.events.iter_mut().for_each(|sink| sink.ending());
    }

    /// Calls [`RecordSink::finish`] of all, which are absent afterwards.
    pub fn finish(&mut self) {
        self.records.take().into_iter().for_each(|mut sink| sink.finish());
        self.events.take().into_iter().for_each(|mut sink| sink.finish());
        self.open.take().into_iter().for_each(|mut sink| sink.finish());
    }
}
