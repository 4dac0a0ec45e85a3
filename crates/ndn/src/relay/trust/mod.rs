//! Which commands are executed: those of local programs, and those signed by a configured key.
//!
//! ```text
//!  command ─▶ may the sender use it? ─▶ signature, key ─▶ time, replay ─▶ failures ─▶ verify ─▶ face, prefix
//!             any step may refuse, with a reason                          of the face
//! ```
//!
//! | sender | commands | signature |
//! |---|---|---|
//! | local program | all, under `/localhost/nfd` | if [`TrustSettings::sign_local`] |
//! | neighbour | `rib` register and unregister of its own face, under `/localhop/nfd` | always |
//!
//! As NFD's `localhop_security`, but keys are configured, not found by chains of certificates.
//!
//! Invariants: without an anchor no command of a neighbour is executed. Refused commands change no
//! state but counters. A signature is verified after all checks that are cheaper, and failed
//! verifications are limited per second. Memory is bounded by the number of anchors.

use hashbrown::HashMap;

use crate::packets::management::{Command, ControlParameters, ORIGIN_CLIENT};
use crate::packets::signature::{SignatureInfo, SignatureType, Signed, VerifyingKey};
use crate::packets::{Interest, NameBuf};

use crate::relay::replay::Replay;

/// Maximum number of anchors.
pub const ANCHORS_MAX: usize = 256;

/// Maximum number of routes that commands of a neighbour add to its face.
pub(crate) const ROUTES_MAX: usize = 1_024;

/// Maximum difference between a command's time and the clock, in milliseconds; as in NFD.
const TIME_WINDOW_MS: u64 = 120_000;

/// Maximum number of failed verifications per second: of one face, and of all neighbours together.
/// Source addresses of datagrams can be forged, so a sender can have many faces.
const FAILURES_OF_FACE: u32 = 10;
const FAILURES_OF_NEIGHBOURS: u32 = 500;

/// Which commands need which signatures.
#[derive(Clone, Debug, Default)]
pub struct TrustSettings {
    /// The accepted keys, at most [`ANCHORS_MAX`].
    pub anchors: Vec<Anchor>,
    /// Whether commands of local programs need a signature, too.
    pub sign_local: bool,
}

/// A key whose commands are executed.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// A prefix of the key locators of its commands.
    pub name: NameBuf,
    /// The key.
    pub key: VerifyingKey,
    /// The modules whose commands it may sign.
    pub allow: Vec<Module>,
    /// The prefix that it may register and configure, like all longer ones.
    pub prefix: NameBuf,
    /// The first and last moment at which it is accepted, in milliseconds since 1970.
    pub valid_ms: (u64, u64),
}

/// A module with commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// Routes.
    Rib,
    /// Faces.
    Faces,
    /// Strategies of prefixes.
    StrategyChoice,
}

impl Module {
    /// All modules.
    pub const ALL: [Self; 3] = [Self::Rib, Self::Faces, Self::StrategyChoice];

    /// The name in commands and configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rib => "rib",
            Self::Faces => "faces",
            Self::StrategyChoice => "strategy-choice",
        }
    }

    /// The module of a command; `None` for queries, which change nothing.
    fn of(command: &Command<'_>) -> Option<Self> {
        match (command.module, command.verb) {
            (_, b"list" | b"query") => None,
            (module, _) => Self::ALL.into_iter().find(|one| one.name().as_bytes() == module),
        }
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedCommand {
    /// The sender or the key may not use the command.
    NotAllowed,
    /// The command has no signature.
    Unsigned,
    /// The elements of its signature are malformed.
    Malformed,
    /// The signature has an unsupported type, such as RSA.
    Unsupported,
    /// No anchor has this type and is a prefix of the key locator.
    NoAnchor,
    /// The anchor's certificate is not valid now.
    Expired,
    /// The time of the signature is missing or differs too much from the clock.
    Time,
    /// Its time, sequence number or nonce was used before.
    Replay,
    /// Too many signatures of the face, or of all neighbours, were invalid in this second.
    TooMany,
    /// The signature is not of the anchor's key, or the command was changed.
    BadSignature,
    /// The command concerns another face than the sender's.
    OtherFace,
    /// The key may not register this prefix.
    Prefix,
    /// A neighbour registers a prefix under `/localhost` or `/localhop`, which are of this machine.
    ReservedPrefix,
    /// A neighbour registers a route with the origin of routes that are announced to a routing
    /// daemon.
    Origin,
    /// The face has the maximum number of routes.
    RoutesFull,
}

impl RefusedCommand {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::NotAllowed,
        Self::Unsigned,
        Self::Malformed,
        Self::Unsupported,
        Self::NoAnchor,
        Self::Expired,
        Self::Time,
        Self::Replay,
        Self::TooMany,
        Self::BadSignature,
        Self::OtherFace,
        Self::Prefix,
        Self::ReservedPrefix,
        Self::Origin,
        Self::RoutesFull,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::Unsigned => "unsigned",
            Self::Malformed => "malformed-signature",
            Self::Unsupported => "unsupported-signature",
            Self::NoAnchor => "no-anchor",
            Self::Expired => "expired-anchor",
            Self::Time => "time",
            Self::Replay => "replay",
            Self::TooMany => "too-many-bad",
            Self::BadSignature => "bad-signature",
            Self::OtherFace => "other-face",
            Self::Prefix => "prefix",
            Self::ReservedPrefix => "reserved-prefix",
            Self::Origin => "origin",
            Self::RoutesFull => "routes-full",
        }
    }

    /// The status text of the response; its code is 403.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NotAllowed => "command not allowed",
            Self::Unsigned => "command not signed",
            Self::Malformed => "malformed signature",
            Self::Unsupported => {
                "unsupported type of signature: use Ed25519, ECDSA on P-256 or HMAC"
            }
            Self::NoAnchor => "no [[anchor]] for the key of this command",
            Self::Expired => "the certificate of the [[anchor]] is not valid now",
            Self::Time => "the signature has no time within 2 minutes of the forwarder's clock",
            Self::Replay => "replayed command: its time or nonce was used before",
            Self::TooMany => "too many invalid signatures: retry in a second",
            Self::BadSignature => "invalid signature",
            Self::OtherFace => "a neighbour can register only its own face",
            Self::Prefix => "the key may not register this prefix",
            Self::ReservedPrefix => {
                "a neighbour cannot register prefixes under /localhost or /localhop"
            }
            Self::Origin => "a neighbour cannot register routes with origin 65: use 0",
            Self::RoutesFull => "too many routes of this face",
        }
    }
}

/// Face and time of a received command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) face: u32,
    /// Whether the sender is a program on this machine.
    pub(crate) is_local: bool,
    /// The steady time.
    pub(crate) now_ns: u64,
    /// The wall clock, in milliseconds since 1970.
    pub(crate) clock_ms: u64,
}

/// The anchors with their state.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    keys: Vec<(Anchor, Replay)>,
    sign_local: bool,
    failures: Failures,
}

impl Trust {
    pub(crate) fn new(settings: TrustSettings) -> Self {
        let anchors = settings.anchors.into_iter().take(ANCHORS_MAX);
        Self {
            keys: anchors.map(|anchor| (anchor, Replay::default())).collect(),
            sign_local: settings.sign_local,
            failures: Failures::default(),
        }
    }

    /// Checks whether a command may be executed. An accepted command is not accepted again.
    pub(crate) fn check(
        &mut self,
        received: &Received,
        interest: &Interest<'_>,
        command: &Command<'_>,
    ) -> Result<(), RefusedCommand> {
        use RefusedCommand as Refused;
        let module = Module::of(command);
        let is_registration =
            matches!((command.module, command.verb), (b"rib", b"register" | b"unregister"));
        if !received.is_local && !is_registration {
            return Err(Refused::NotAllowed);
        }
        if received.is_local && (!self.sign_local || module.is_none()) {
            return Ok(());
        }
        let signed = Signed::interest(interest).map_err(|_| Refused::Malformed)?;
        let signed = signed.ok_or(Refused::Unsigned)?;
        let of = signed.info.signature_type().ok_or(Refused::Unsupported)?;
        let key = self.find(of, &signed.info).ok_or(Refused::NoAnchor)?;
        let (anchor, replay) = &mut self.keys[key];
        if !(anchor.valid_ms.0..=anchor.valid_ms.1).contains(&received.clock_ms) {
            return Err(Refused::Expired);
        }
        if !module.is_some_and(|module| anchor.allow.contains(&module)) {
            return Err(Refused::NotAllowed);
        }
        let is_timely = |time_ms: u64| time_ms.abs_diff(received.clock_ms) <= TIME_WINDOW_MS;
        if !signed.info.time_ms.is_some_and(is_timely) {
            return Err(Refused::Time);
        }
        if !replay.is_new(&signed.info, of != SignatureType::Digest) {
            return Err(Refused::Replay);
        }
        if self.failures.are_too_many(received) {
            return Err(Refused::TooMany);
        }
        if !anchor.key.verifies(&signed) {
            self.failures.count(received);
            return Err(Refused::BadSignature);
        }
        replay.accept(&signed.info);
        // Parameters that cannot be read are refused when the command is executed.
        let parameters = command.parameters().unwrap_or_default();
        if !received.is_local && names_other_face(&parameters, received.face) {
            return Err(Refused::OtherFace);
        }
        match &parameters.name {
            Some(name) if !name.as_bytes().starts_with(anchor.prefix.as_bytes()) => {
                Err(Refused::Prefix)
            }
            _ if received.is_local => Ok(()),
            _ => check_neighbours_route(&parameters),
        }
    }

    /// The position of the anchor of a signature: the one with the longest name that is a prefix of
    /// the key locator. A digest has no key. Without a locator, the only anchor of its type.
    fn find(&self, of: SignatureType, info: &SignatureInfo<'_>) -> Option<usize> {
        let anchors = self.keys.iter().map(|(anchor, _)| anchor).enumerate();
        let mut of_type = anchors.filter(|(_, anchor)| anchor.key.signature_type() == of);
        match info.locator {
            Some(locator) if of != SignatureType::Digest => of_type
                .filter(|(_, anchor)| anchor.name.as_name().is_prefix_of(&locator))
                .max_by_key(|(_, anchor)| anchor.name.as_bytes().len())
                .map(|(at, _)| at),
            _ => {
                let (at, _) = of_type.next()?;
                of_type.next().is_none().then_some(at)
            }
        }
    }
}

fn names_other_face(parameters: &ControlParameters, own: u32) -> bool {
    parameters.face.is_some_and(|face| face != 0 && face != u64::from(own))
}

/// Checks what no key permits to a neighbour.
fn check_neighbours_route(parameters: &ControlParameters) -> Result<(), RefusedCommand> {
    let is_under = |prefix: &[u8]| {
        parameters.name.as_ref().is_some_and(|name| name.as_bytes().starts_with(prefix))
    };
    if is_under(b"\x08\x09localhost") || is_under(b"\x08\x08localhop") {
        return Err(RefusedCommand::ReservedPrefix);
    }
    match parameters.origin {
        Some(ORIGIN_CLIENT) => Err(RefusedCommand::Origin),
        _ => Ok(()),
    }
}

/// Failed verifications in the current second. Its size is bounded by their number.
#[derive(Clone, Debug, Default)]
struct Failures {
    second: u64,
    of_neighbours: u32,
    of_face: HashMap<u32, u32>,
}

impl Failures {
    fn are_too_many(&mut self, received: &Received) -> bool {
        let second = received.now_ns / 1_000_000_000;
        if second != self.second {
            *self = Self { second, ..Self::default() };
        }
        let of_face = self.of_face.get(&received.face).copied().unwrap_or(0);
        of_face >= FAILURES_OF_FACE
            || !received.is_local && self.of_neighbours >= FAILURES_OF_NEIGHBOURS
    }

    fn count(&mut self, received: &Received) {
        *self.of_face.entry(received.face).or_insert(0) += 1;
        self.of_neighbours += u32::from(!received.is_local);
    }
}

#[cfg(test)]
#[cfg(feature = "signatures")]
mod tests;
