//! The keys of Initial packets, which follow from the client's first connection identifier (RFC 9001, section 5.2).
//!
//! ```text
//! salt of the version ─┐
//! connection ID ───────┴─ extract ─▶ secret ─ expand "client in" or "server in" ─▶ side ─ expand ─▶ key, iv, hp
//! ```
//!
//! They protect nothing from a reader of the packet: they detect changes of it.

use ring::hmac::{Context, HMAC_SHA256, Key, sign};

use super::header::{Family, Version};

/// The sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
}

/// The keys of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Of AES-128-GCM.
    pub(super) key: [u8; 16],
    /// The part of the nonce that is common to all packets.
    pub(super) iv: [u8; 12],
    /// Of AES-128-ECB, for header protection.
    pub(super) header: [u8; 16],
}

impl Keys {
    /// The keys of a sender; `None` if the version's salt is unknown.
    pub(super) fn new(version: &Version, connection: &[u8], sender: Sender) -> Option<Self> {
        // HKDF-Extract and HKDF-Expand are HMACs for outputs of at most 32 bytes (RFC 5869, section 2).
        let secret = sign(&Key::new(HMAC_SHA256, version.salt?), connection);
        let side = match sender {
            Sender::Client => b"client in",
            Sender::Server => b"server in",
        };
        let mut own = [0; 32];
        expand(&Key::new(HMAC_SHA256, secret.as_ref()), side, &mut own);
        let own = Key::new(HMAC_SHA256, &own);
        let (key, iv, header): (&[u8], &[u8], &[u8]) = match version.family {
            Family::Two => (b"quicv2 key", b"quicv2 iv", b"quicv2 hp"),
            _ => (b"quic key", b"quic iv", b"quic hp"),
        };
        let mut keys = Self { key: [0; 16], iv: [0; 12], header: [0; 16] };
        expand(&own, key, &mut keys.key);
        expand(&own, iv, &mut keys.iv);
        expand(&own, header, &mut keys.header);
        Some(keys)
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
fn expand<const LEN: usize>(secret: &Key, label: &[u8], out: &mut [u8; LEN]) {
    const { assert!(LEN <= 32) };
    const PREFIX: &[u8] = b"tls13 ";
    let mut mac = Context::with_key(secret);
    mac.update(&[0, LEN as u8, (PREFIX.len() + label.len()) as u8]);
    [PREFIX, label, &[0, 1]].iter().for_each(|part| mac.update(part));
    out.copy_from_slice(&mac.sign().as_ref()[..LEN]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: &[u8] = b"\x83\x94\xc8\xf0\x3e\x51\x57\x08";

    fn keys(version: u32, sender: Sender) -> Keys {
        Keys::new(Version::of(version).unwrap(), CONNECTION, sender).unwrap()
    }

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn keys_are_those_of_the_standards() {
        // RFC 9001, appendix A.1.
        let client = keys(1, Sender::Client);
        assert_eq!(hexadecimal(&client.key), "1f369613dd76d5467730efcbe3b1a22d");
        assert_eq!(hexadecimal(&client.iv), "fa044b2f42a3fd3b46fb255c");
        assert_eq!(hexadecimal(&client.header), "9f50449e04a0e810283a1e9933adedd2");
        let server = keys(1, Sender::Server);
        assert_eq!(hexadecimal(&server.key), "cf3a5331653c364c88f0f379b6067e37");
        assert_eq!(hexadecimal(&server.iv), "0ac1493ca1905853b0bba03e");
        assert_eq!(hexadecimal(&server.header), "c206b8d9b9f0f37644430b490eeaa314");
        // RFC 9369, appendix A.1.
        let client = keys(0x6b33_43cf, Sender::Client);
        assert_eq!(hexadecimal(&client.key), "8b1a0bc121284290a29e0971b5cd045d");
        assert_eq!(hexadecimal(&client.iv), "91f73e2351d8fa91660e909f");
        assert_eq!(hexadecimal(&client.header), "45b95e15235d6f45a6b19cbcb0294ba9");
        let server = keys(0x6b33_43cf, Sender::Server);
        assert_eq!(hexadecimal(&server.key), "82db637861d55e1d011f19ea71d5d2a7");
        assert_eq!(hexadecimal(&server.iv), "dd13c276499c0249d3310652");
        assert_eq!(hexadecimal(&server.header), "edf6d05c83121201b436e16877593c3a");
    }
}
