//! Outputs for alerts: lines in a file, syslog, webhooks, programs, files of packets.
//!
//! ```text
//! merger ─ Notice ─▶ Alerts: is there room? ─ ring ─▶ AlertSink ─▶ Target: file, syslog, webhook, program, packets
//! ```
//!
//! Invariants: the sender of an alert waits for no output; that of totals does so in runs over files. Notices that wait take at most [`ROOM_BYTES`]; those beyond
//! are lost, counted, and announced by the next one ([`Notice::lost_before`]). A target gets the others in order.

mod file;
mod output;
mod packets;
mod program;
mod syslog;
mod url;
mod webhook;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringtap_flow::RecordSink;

pub(crate) use file::FileTarget;
pub(crate) use output::start_lines;
pub use output::{AlertOutput, InvalidAlertOutput};
pub use packets::WritePackets;
pub use program::{MOST_RUNNING, Reply, Request};

use crate::RecordTotals;
use crate::block::{Block, Encode, Payload, Room};
use crate::shared::{LINGER, Shared};
use crate::store::Store;
use crate::summary::{Reason, Sent};
use crate::writer::Sink;

/// Bytes of the notices that wait for an output.
const ROOM_BYTES: u64 = 2 << 20;

/// Memory of an output.
pub(crate) const ALERT_BYTES: u64 = 3 * ROOM_BYTES;

/// The pause of a sender that waits for room.
const PAUSE: Duration = Duration::from_millis(1);

/// More notices than fit these bytes.
const WAITING_MAX: usize = 1 << 15;
const _: () = assert!(WAITING_MAX * size_of::<Notice>() > ROOM_BYTES as usize);

/// The counts of an alert.
const ONE: RecordTotals = RecordTotals { records: 1, packets: 0, octets: 0 };

/// How urgent an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// To know: the end of an alert.
    Info,
    /// To look at when there is time.
    Low,
    /// To look at.
    Medium,
    /// To look at first.
    High,
}

impl Severity {
    /// All, the least urgent first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Low, Self::Medium, Self::High];

    /// Its name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A change of an alert, as outputs get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One JSON object, without the end of the line.
    pub json: String,
    /// A sentence.
    pub text: String,
    /// The kind of the alert: letters, digits and `_`.
    pub kind: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// Whether it reports the end of something, which is less urgent.
    pub is_end: bool,
    /// The scalar fields of the object but the text: names of letters, digits and `_`, and values.
    pub fields: Vec<(String, String)>,
    /// The time of the change, nanoseconds since 1970.
    pub time_ns: u64,
    /// If it begins: packets that have all of these addresses are about it. Otherwise none.
    pub packets_of: Vec<IpAddr>,
    /// Notices lost for lack of room since the one before. Set by [`Alerts::send`].
    pub lost_before: u64,
}

impl Notice {
    fn bytes(&self) -> usize {
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
        let addresses = self.packets_of.len() * size_of::<IpAddr>();
        let texts = self.json.len() + self.text.len() + fields.sum::<usize>();
        size_of::<Self>() + texts + addresses
    }

    /// The object, with the number of those lost before.
    fn object(&self) -> String {
        match self.json.strip_suffix('}') {
            Some(fields) if self.lost_before > 0 => {
                format!("{fields},\"lost_before\":{}}}", self.lost_before)
            }
            _ => self.json.clone(),
        }
    }
}

/// Notices in a block.
#[derive(Default)]
pub(crate) struct Notices(Vec<Notice>);

impl Payload for Notices {
    fn len(&self) -> usize {
        self.0.iter().map(Notice::bytes).sum()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Puts notices into blocks as they are.
pub(crate) struct NoticeEncoder;

impl Encode for NoticeEncoder {
    type Item = Notice;
    type Payload = Notices;

    fn payload(&self, _bytes: usize) -> Notices {
        Notices::default()
    }

    fn add(
        &mut self,
        notice: &Notice,
        notices: &mut Notices,
        counts: &mut RecordTotals,
    ) -> Result<(), Reason> {
        notices.0.push(notice.clone());
        *counts += ONE;
        Ok(())
    }

    fn counts_of(&self, _notice: &Notice) -> RecordTotals {
        ONE
    }
}

/// The sending end of one output.
pub(crate) struct AlertSender {
    sink: Box<dyn RecordSink<Notice>>,
    shared: Arc<Shared>,
    /// Lost since the last one that had room.
    lost: u64,
    /// Whether the sender waits for room, as long as the output works.
    waits: bool,
}

impl AlertSender {
    /// Each notice is a block.
    pub(crate) const ROOM: Room =
        Room { block: 1, blocks: WAITING_MAX, waits: false, prompt: false, period_ns: None };

    pub(crate) fn new(sink: Box<dyn RecordSink<Notice>>, shared: Arc<Shared>) -> Self {
        Self { sink, shared, lost: 0, waits: false }
    }

    /// A sender that waits for room: in runs over files.
    pub(crate) fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    fn has_room(&self, notice: &Notice) -> bool {
        self.shared.queued() + notice.bytes() as u64 <= ROOM_BYTES
    }

    fn send(&mut self, notice: &Notice) {
        while self.waits
            && !self.has_room(notice)
            && !self.shared.is_failing()
            && !self.shared.over()
        {
            self.shared.wake_writer();
            std::thread::sleep(PAUSE);
        }
        if !self.has_room(notice) {
            self.lost += 1;
            return self.shared.drop_made(Reason::NoRoom, ONE);
        }
        let lost_before = std::mem::take(&mut self.lost);
        self.sink.take(&Notice { lost_before, ..notice.clone() });
        self.shared.wake_writer();
    }
}

/// All outputs of a run for alerts, with their numbers. They end when they are removed.
#[derive(Clone, Default)]
pub struct Alerts(Arc<Mutex<Vec<(u32, AlertSender)>>>);

impl Alerts {
    fn all(&self) -> MutexGuard<'_, Vec<(u32, AlertSender)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn extend(&self, outputs: Vec<(u32, AlertSender)>) {
        self.all().extend(outputs);
    }

    /// Ends an output.
    pub(crate) fn remove(&self, number: u32) {
        self.all().retain(|(own, _)| *own != number);
    }

    /// Ends all outputs.
    pub(crate) fn close(&self) {
        self.all().clear();
    }

    /// Returns true if no output takes alerts.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Hands a notice to all outputs. Does not wait: without room for it, it is lost and counted.
    pub fn send(&mut self, notice: &Notice) {
        self.all().iter_mut().for_each(|(_, output)| output.send(notice));
    }
}

/// Delivers notices to one place. All errors of the outside occur here.
pub(crate) trait Target: Send {
    /// Delivers a notice, and counts it as sent or lost. Tries again until [`Shared::over`].
    fn deliver(&mut self, notice: &Notice, shared: &Shared);

    /// Called once a second.
    fn tick(&mut self, _shared: &Shared) {}

    /// The file, if there is one.
    fn store(&mut self) -> Option<&mut dyn Store> {
        None
    }

    /// HUP: files are opened again.
    fn renew(&mut self, _shared: &Shared) {}

    /// Waits for results, and closes. The last call but one.
    fn finish(&mut self, _shared: &Shared) {}

    /// Whether the last error is a refused datagram: it is counted, but UDP does not guarantee delivery, so it is no failure.
    fn is_refused(&self) -> bool {
        false
    }
}

fn count_sent(octets: usize, shared: &Shared) {
    shared.send(Sent { flows: ONE, messages: 1, message_octets: octets as u64 });
}

fn count_lost(reason: Reason, shared: &Shared) {
    shared.gives_up();
    shared.lose(reason, ONE);
}

/// The sink of an output.
pub(crate) struct AlertSink {
    target: Box<dyn Target>,
}

impl AlertSink {
    pub(crate) fn new(target: Box<dyn Target>) -> Self {
        Self { target }
    }

    /// Whether what remains is lost: the run has ended [`LINGER`] ago, even if the output still makes progress. A file that
    /// does so is waited for.
    fn is_late(shared: &Shared, ended_for: Option<Duration>) -> bool {
        shared.over() || !shared.is_file() && ended_for.is_some_and(|time| time >= LINGER)
    }
}

impl Sink for AlertSink {
    type Payload = Notices;

    fn write(&mut self, block: &mut Block<Notices>, shared: &Shared) {
        for notice in &block.payload.0 {
            if Self::is_late(shared, shared.ended_for()) {
                count_lost(Reason::TooLate, shared);
            } else {
                self.target.deliver(notice, shared);
            }
        }
    }

    fn tick(&mut self, shared: &Shared) {
        self.target.tick(shared);
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        self.target.store()
    }

    fn renew(&mut self, shared: &Shared) {
        self.target.renew(shared);
    }

    fn finish(&mut self, shared: &Shared) {
        self.target.finish(shared);
        if !self.target.is_refused() {
            shared.judge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Items;
    use crate::block::{Inbox, lane};
    use crate::periods::Period;
    use crate::shared::WaitPolicy;

    pub(crate) fn notice(text: &str) -> Notice {
        Notice {
            json: format!("{{\"id\":7,\"text\":\"{text}\"}}"),
            text: text.into(),
            kind: "flood",
            severity: Severity::Medium,
            is_end: false,
            fields: vec![("id".into(), "7".into())],
            time_ns: 0,
            packets_of: Vec::new(),
            lost_before: 0,
        }
    }

    pub(crate) fn shared() -> Arc<Shared> {
        Arc::new(Shared::new("test".into(), WaitPolicy::Collector, true).of(Items::Alerts))
    }

    fn sender() -> (AlertSender, Inbox<Notices>, Arc<Shared>) {
        let shared = shared();
        let (sink, inbox) = lane(NoticeEncoder, AlertSender::ROOM, Arc::clone(&shared)).unwrap();
        (AlertSender::new(Box::new(sink), Arc::clone(&shared)), inbox, shared)
    }

    /// Keeps the objects that it gets.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Target for Kept {
        fn deliver(&mut self, notice: &Notice, shared: &Shared) {
            self.0.lock().unwrap().push(notice.object());
            count_sent(1, shared);
        }
    }

    #[test]
    fn notices_without_room_are_counted_and_announced() {
        let (mut sender, mut inbox, shared) = sender();
        let large = notice(&"x".repeat(100_000));
        (0..60).for_each(|_| sender.send(&large));
        let lost = shared.status().lost(Reason::NoRoom);
        assert_eq!((shared.status().made, lost > 20), (60, true), "{lost}");
        let kept = Arc::default();
        let mut sink = AlertSink::new(Box::new(Kept(Arc::clone(&kept))));
        while let Some(mut block) = inbox.take(Period::NONE) {
            sink.write(&mut block, &shared);
            inbox.give_back(block, &shared);
        }
        sender.send(&notice("next"));
        sender.send(&notice("last"));
        while let Some(mut block) = inbox.take(Period::NONE) {
            sink.write(&mut block, &shared);
            inbox.give_back(block, &shared);
        }
        let kept = kept.lock().unwrap();
        let next = format!("{{\"id\":7,\"text\":\"next\",\"lost_before\":{lost}}}");
        assert_eq!(kept[kept.len() - 2..], [next, notice("last").json]);
        let status = shared.status();
        assert_eq!((status.sent + lost, status.queued_bytes), (62, 0));
    }

    #[test]
    fn small_notices_are_bounded_by_bytes_too() {
        let (mut sender, _inbox, shared) = sender();
        (0..WAITING_MAX).for_each(|_| sender.send(&notice("")));
        assert!(sender.lost > 0 && shared.status().queued_bytes <= ROOM_BYTES);
    }

    #[test]
    fn nothing_is_tried_after_an_interrupt_and_its_grace() {
        let (mut sender, mut inbox, shared) = sender();
        sender.send(&notice("late"));
        shared.cancel();
        let mut sink = AlertSink::new(Box::new(Kept(Arc::default())));
        let mut block = inbox.take(Period::NONE).unwrap();
        sink.write(&mut block, &shared);
        assert_eq!(shared.status().lost(Reason::TooLate), 1);
    }

    #[test]
    fn a_file_is_waited_for_until_an_interrupt_and_other_outputs_for_a_while() {
        let file = Shared::new("test".into(), WaitPolicy::File, false).of(Items::Totals);
        for (shared, late) in [(&file, false), (&*shared(), true)] {
            assert!(
                !AlertSink::is_late(shared, None) && !AlertSink::is_late(shared, Some(LINGER / 2))
            );
            assert_eq!(AlertSink::is_late(shared, Some(LINGER)), late);
        }
        file.cancel();
        assert!(AlertSink::is_late(&file, None));
    }
}
