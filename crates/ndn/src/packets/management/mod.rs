//! The management protocol of NFD, the reference forwarder. Programs use it to register prefixes
//! and to query the state of a forwarder.
//!
//! ```text
//!  Interest  /localhost/nfd / rib / register / ControlParameters / … signature          a command
//!  Data      the same name, holding a ControlResponse {code, text, ControlParameters}
//!
//!  Interest  /localhost/nfd / faces / list                                              a data set
//!  Data      … / version / segment, holding FaceStatus, FaceStatus, …
//!
//!  Interest  /localhost/nfd / faces / events                                      a notification
//!  Data      … / sequence number, holding a FaceEventNotification
//! ```
//!
//! Follows the NFD Management Protocol (NFD wiki). Commands carry signatures, which are verified by
//! `relay`: here they are only written.

mod command;
mod control;
mod datasets;
mod events;

pub use command::{Command, CommandError, NewCommand, command, last_segment, segment};
pub use control::{ControlParameters, ControlResponse};
pub use datasets::{
    CsInfo, FaceFilter, FaceStatus, FibEntry, GeneralStatus, RibEntry, Route, StrategyChoice,
};
pub use events::{FaceEvent, FaceEventKind};

/// Origin of a route: registered by a program for itself.
pub const ORIGIN_APP: u64 = 0;
/// Origin of a route: registered by a program, and to be announced to the network by a routing
/// daemon.
pub const ORIGIN_CLIENT: u64 = 65;
/// Origin of a route: the configuration or a command.
pub const ORIGIN_STATIC: u64 = 255;

/// Face flag: a local program receives the number of the face that received a packet.
pub const LOCAL_FIELDS: u64 = 1;

/// Route flag: the route also applies to longer prefixes with routes of their own.
pub const CHILD_INHERIT: u64 = 1;
/// Route flag: routes of shorter prefixes do not apply to this prefix and longer ones.
pub const CAPTURE: u64 = 2;

/// The prefix of strategy names: `/localhost/nfd/strategy/NAME/v=N`.
pub const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy";
