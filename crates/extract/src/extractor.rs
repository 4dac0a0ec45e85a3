//! What an extractor is: what it gets, how far it comes, what it keeps.

use ringtap_wire::PacketRecord;

use crate::kinds::Kind;
use crate::opening::Opening;

/// Longest time between the first packet of an incomplete message, a question or a connection, and another packet that
/// belongs to it, nanoseconds; by the times of both packets. [`Payloads::turn`](crate::Payloads::turn) is called at most this often.
pub const LIFETIME_NS: u64 = 10_000_000_000;

/// Receives the facts of a message, in order.
pub(crate) type Found<'a> = &'a mut dyn FnMut(Kind, &[u8]);

/// The payload of a packet, or a stream of several.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The packet; of a stream, the latest one.
    pub record: &'a PacketRecord,
    /// The bytes behind the TCP or UDP header; of a stream, all bytes of the message so far.
    pub bytes: &'a [u8],
    /// The sequence number in the TCP header; 0 for UDP.
    pub sequence: u32,
}

/// What follows when a connection changes its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Unknown frames: nothing is read.
    Opaque,
    /// Another connection within this one: no HTTP is read.
    Tunnel,
}

/// How far a parser came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The payload is of another protocol; nothing was found.
    Other,
    /// All messages in the payload were read.
    Done,
    /// All messages in the payload were read, and this number of bytes behind it belong to the last one.
    Body(u64),
    /// The first bytes, of this number, were read, and what follows them begins a message of another protocol.
    Preface(usize),
    /// All messages in the payload were read, and another protocol follows in both directions.
    Switched(Switch),
    /// The message that begins at this position continues in the next segment. Earlier messages were passed on,
    /// nothing of this one.
    More(usize),
}

/// Reads the payloads of one protocol.
pub(crate) trait Extractor {
    /// What a message over TCP begins with.
    const TCP: &'static [Opening] = &[];
    /// What a UDP datagram begins with.
    const UDP: &'static [Opening] = &[];
    /// UDP ports whose datagrams are read, whatever they begin with.
    const PORTS: &'static [u16] = &[];

    /// The state of the protocol in a reader, such as questions without an answer.
    type State: State;

    /// Passes the messages in a payload to `found`: for each, its [`Kind::Protocol`] and its facts.
    ///
    /// # Errors
    /// Why it could not be read. Messages found before that were passed on.
    fn read(
        state: &mut Self::State,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread>;
}

/// The state of a protocol in a reader.
pub(crate) trait State {
    /// A state that takes at most about `memory` bytes.
    fn new(memory: usize) -> Self;

    /// Begins the next turn: see [`Payloads::turn`](crate::Payloads::turn).
    fn turn(&mut self) {}

    /// Bytes that it takes now, of those given to [`State::new`].
    #[cfg(test)]
    fn memory(&self) -> usize {
        0
    }

    /// Messages that were dropped before they were complete, with the reason, since the last call. At the end of the
    /// run, `end` is true, and incomplete messages are included.
    fn dropped(&mut self, _end: bool, _count: &mut dyn FnMut(Unread, u64)) {}
}

/// No state.
impl State for () {
    fn new(_memory: usize) -> Self {}
}

/// Why a payload could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// The payload contradicts its protocol.
    Malformed,
    /// The payload continues beyond the captured bytes.
    Truncated,
    /// The payload has more values than are kept of one packet, or is longer than a stream may be.
    TooMuch,
    /// Its rest did not arrive within 10 s, by the times of its packets, or before the end.
    Incomplete,
    /// The memory for incomplete messages was used up.
    NoRoom,
    /// The payload was read, and evicted because the memory was used up: if it is sent again, it is read again.
    Evicted,
}

impl Unread {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Malformed,
        Self::Truncated,
        Self::TooMuch,
        Self::Incomplete,
        Self::NoRoom,
        Self::Evicted,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::TooMuch => "too_much",
            Self::Incomplete => "incomplete",
            Self::NoRoom => "no_room",
            Self::Evicted => "evicted",
        }
    }
}
