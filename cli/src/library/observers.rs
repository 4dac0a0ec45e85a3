//! Functions that watch a run.

use std::any::{Any, TypeId};
use std::sync::Arc;

use ringtap_monitor::{Context, Custom, CustomPart, CustomSection};
use ringtap_query::Matcher;
use ringtap_stage::Shard;

use crate::{Flow, Message, Packet};

/// What a function is called with. The loop over the packets is compiled with the function.
pub(super) trait Call: Send + Sync + 'static {
    const TAKES_RECORDS: bool = false;
    const TAKES_MESSAGES: bool = false;

    fn selection(&self) -> Option<&str> {
        None
    }

    #[inline(always)]
    fn packets(&self, _packets: &[Packet]) {}

    #[inline(always)]
    fn record(&self, _record: &Flow) {}

    #[inline(always)]
    fn message(&self, _message: &Message) {}
}

pub(super) struct OnPacket<F>(pub(super) F);

impl<F: Fn(&Packet) + Send + Sync + 'static> Call for OnPacket<F> {
    fn packets(&self, packets: &[Packet]) {
        packets.iter().for_each(&self.0);
    }
}

pub(super) struct OnFlow<F>(pub(super) F);

impl<F: Fn(&Flow) + Send + Sync + 'static> Call for OnFlow<F> {
    const TAKES_RECORDS: bool = true;

    fn record(&self, record: &Flow) {
        self.0(record);
    }
}

pub(super) struct OnFlowWhere<F>(pub(super) Arc<Selection>, pub(super) F);

/// The flows that an expression selects.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) expression: String,
    pub(super) matcher: Matcher,
}

impl<F: Fn(&Flow) + Send + Sync + 'static> Call for OnFlowWhere<F> {
    const TAKES_RECORDS: bool = true;

    fn selection(&self) -> Option<&str> {
        Some(&self.0.expression)
    }

    fn record(&self, record: &Flow) {
        if self.0.matcher.matches(record) {
            self.1(record);
        }
    }
}

pub(super) struct OnMessage<F>(pub(super) F);

impl<F: Fn(&Message) + Send + Sync + 'static> Call for OnMessage<F> {
    const TAKES_MESSAGES: bool = true;

    fn message(&self, message: &Message) {
        self.0(message);
    }
}

/// The definition, and the part in each worker.
struct Observer<C>(Arc<C>);

/// An observer of a run that makes these calls.
pub(super) fn observer<C: Call>(call: C) -> Arc<dyn Custom> {
    Arc::new(Observer(Arc::new(call)))
}

impl<C: Call> Custom for Observer<C> {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn kind(&self) -> TypeId {
        TypeId::of::<C>()
    }

    fn takes_records(&self) -> bool {
        C::TAKES_RECORDS
    }

    fn takes_events(&self) -> bool {
        C::TAKES_MESSAGES
    }

    fn selection(&self) -> Option<&str> {
        self.0.selection()
    }

    fn part(&self, _: &Context, _: Shard) -> Box<dyn CustomPart> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}

impl<C: Call> CustomPart for Observer<C> {
    fn on_packets(&mut self, packets: &[Packet]) {
        self.0.packets(packets);
    }

    fn on_record(&mut self, record: &Flow) {
        self.0.record(record);
    }

    fn on_event(&mut self, event: &Message) {
        self.0.message(event);
    }

    fn merge(&mut self, _: Box<dyn CustomPart>) {}

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn end(self: Box<Self>) -> Option<CustomSection> {
        None
    }
}
