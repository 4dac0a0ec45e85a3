//! Signatures of Interests and Data: their fields, the signed bytes, keys and certificates.
//!
//! ```text
//!  Interest | Name … digest | … | Parameters | InterestSignatureInfo | InterestSignatureValue |
//!             └ signed ┘          └────────── signed ──────────────┘
//!  Data     | Name | MetaInfo | Content | SignatureInfo | SignatureValue |
//!             └────────────── signed ─────────────────┘
//!  older command Interest: Name … / time / nonce / SignatureInfo / SignatureValue
//!                          └───────────── signed ─────────────┘
//! ```
//!
//! Follows NDN Packet Format 0.3, sections "Signature" and "Signed Interest", and for the older
//! format "Command Interest" of ndn-cxx; python-ndn still sends it.
//!
//! Invariants: no input causes a panic. Parsing copies nothing. Only `key.rs` uses cryptography
//! beyond SHA-256; it needs the feature `signatures`.

mod certificate;
#[cfg_attr(not(feature = "signatures"), path = "no_key.rs")]
mod key;
mod signed;

pub use certificate::{Certificate, NewCertificate};
pub use key::{Signer, VerifyingKey};
pub use signed::{KeyError, NONCE_MAX, SignatureInfo, SignatureType, Signed};

use crate::packets::kind;
use crate::packets::write::{put, put_value};

/// Appends the fields of a SignatureInfo: type, locator, and those in `more`.
pub(crate) fn signature_info(signer: &Signer, more: &[u8]) -> Vec<u8> {
    let mut info = Vec::new();
    put_value(&mut info, kind::SIGNATURE_TYPE, signer.signature_type().number());
    let mut locator = Vec::new();
    put(&mut locator, kind::NAME, signer.locator().as_bytes());
    put(&mut info, kind::KEY_LOCATOR, &locator);
    info.extend_from_slice(more);
    info
}
