//! The management protocol of NFD, the reference forwarder: how programs announce prefixes and ask what there is.
//!
//! ```text
//!  Interest  /localhost/nfd / rib / register / ControlParameters / … signature          a command
//!  Data      the same name, holding a ControlResponse {code, text, ControlParameters}
//!
//!  Interest  /localhost/nfd / faces / list                                              a data set
//!  Data      … / version / segment, holding FaceStatus, FaceStatus, …
//! ```
//!
//! After the NFD Management Protocol (NFD wiki). Signatures of commands are carried, not verified: who may connect to a
//! forwarder's socket may command it.

mod command;
mod control;
mod datasets;

pub use command::{Command, CommandError, command, last_segment, segment};
pub use control::{ControlParameters, ControlResponse};
pub use datasets::{
    CsInfo, FaceFilter, FaceStatus, FibEntry, GeneralStatus, RibEntry, Route, StrategyChoice,
};

/// Who added a route: a program, for itself.
pub const ORIGIN_APP: u64 = 0;
/// Who added a route: the configuration, or somebody by hand.
pub const ORIGIN_STATIC: u64 = 255;

/// A route also counts for longer prefixes that have routes of their own.
pub const CHILD_INHERIT: u64 = 1;
/// Routes of shorter prefixes do not count beside this one.
pub const CAPTURE: u64 = 2;

/// Where strategies have their names: `/localhost/nfd/strategy/NAME/v=N`.
pub const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy";
