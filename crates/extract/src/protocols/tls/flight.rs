//! What follows a ServerHello before TLS 1.3: the certificates, or a resumed session.
//!
//! ```text
//! full         ServerHello, Certificate, …
//! resumed      ServerHello, (NewSessionTicket,) change of cipher spec          no certificates
//! ```
//!
//! The messages after the first one are not read.

use super::alert;
use super::certificates::{self, Certificates};
use super::handshakes::Handshake;
use super::records::{ALERT, Between, CHANGE_CIPHER_SPEC, Next, Record, next};
use crate::{Found, Kind, Payload, Unread};

const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE: u8 = 11;

/// How far the flight was read.
pub(super) enum Flight {
    /// The next message is not complete.
    Waits,
    /// Nothing more is read of it.
    Over,
    /// An alert is at this place.
    Alert,
}

/// Reads the message at `place`, and passes on what it says.
///
/// # Errors
/// Why the certificates could not be read.
pub(super) fn read(
    payload: &Payload<'_>,
    place: Between,
    handshake: &Handshake,
    certificates: &mut Certificates,
    found: Found<'_>,
) -> Result<Flight, Unread> {
    let Payload { record: packet, bytes, .. } = *payload;
    let message = match next(bytes, place, is_first)? {
        Next::Message(message) => message,
        Next::Cut => return Ok(Flight::Waits),
        Next::Other => {
            let rest = bytes.get(place.at..).unwrap_or_default();
            let record = if place.inside == 0 { Record::read(rest).ok() } else { None };
            return Ok(match record {
                // Without the client's hello it may be another session that goes on.
                Some(record) if record.kind == CHANGE_CIPHER_SPEC => {
                    if handshake.may_have_ticket() {
                        resumed(found);
                    }
                    Flight::Over
                }
                Some(record) if record.kind == ALERT && record.cut && record.len == 2 => {
                    Flight::Waits
                }
                Some(record) if alert::description(&record).is_some() => Flight::Alert,
                _ => Flight::Over,
            });
        }
    };
    match message.split()? {
        (CERTIFICATE, body) => {
            certificates::read(body, handshake.name.as_deref(), packet.ts_ns, certificates, found)?;
        }
        _ => resumed(found),
    }
    Ok(Flight::Over)
}

/// Whether the first message after the hello may begin with these bytes, if it is of interest.
fn is_first(message: &[u8]) -> bool {
    matches!(message, [] | [CERTIFICATE | NEW_SESSION_TICKET, ..])
}

/// Before TLS 1.3, a server that sends no certificate at once resumes a session by the client's ticket (RFC 5077, section 3.1).
fn resumed(found: Found<'_>) {
    found(Kind::Protocol, b"tls");
    found(Kind::TlsKind, b"resumption");
    found(Kind::TlsResumption, b"ticket");
}
