//! Servers of a run: HTTP pages, metrics and events, and requests through Unix sockets.
//!
//! ```text
//! clients ──▶ Server: one thread, many clients ──▶ Protocol ── Http: request → Site → reply
//!             (server/, tls.rs)                      (http.rs)
//!                                               └─ another one, as of control packets
//! ```
//!
//! Invariant: no client delays the run or another client, whatever it sends or reads; connections and buffered bytes are
//! bounded.
#![forbid(unsafe_code)]

mod http;
mod listener;
mod metrics;
mod server;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

pub use http::{Get, Listening, Reply, Serving, Site};
pub use listener::{SocketFile, listen};
pub use metrics::{Exposition, Format, Metric, Sample, kind, label_value, metric, one, sample};
pub use server::{After, Limits, Listener, Next, Protocol, Refusal, Server};
pub use tls::{Certificate, TlsListener};
