//! The entry point of the fuzz target: any bytes are a script of datagrams.
//!
//! ```text
//! | action | length (2) | bytes | action | …      action: bit 0: from the server, 1: `bytes` are frames to be protected,
//!                                                 2: 4 s later, 3: to another identifier, 4 to 7: the version
//! ```

use ringtap_wire::PacketRecord;

use super::seal::Plain;
use super::{Quic, State};
use crate::{Extractor, Kind, Payload, State as _};

const VERSIONS: [u32; 8] =
    [1, 0x6b33_43cf, 0xff00_001d, 0xff00_0016, 0xface_b002, 0x5130_3530, 0x5430_3531, 0x5430_3530];
const MEMORY: usize = 100_000;

/// Reads a script; panics if a fact is outside a message, or if too much memory is taken.
pub fn fuzz_quic(mut script: &[u8]) {
    let mut state = State::new(MEMORY);
    let (mut ts_ns, mut number) = (0, 0);
    while let Some((&[action, l0, l1], rest)) = script.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([l0, l1])).min(rest.len());
        let (bytes, behind) = rest.split_at(len);
        script = behind;
        let from_client = action & 1 == 0;
        ts_ns += u64::from(action >> 2 & 1) * 4_000_000_000;
        let first = if action & 8 == 0 { b"identify" } else { b"identity" };
        let sealed = Plain {
            version: VERSIONS[usize::from(action >> 4) % VERSIONS.len()],
            from_client,
            first,
            destination: if from_client { first } else { b"" },
            token: if action & 0x88 == 0x88 { b"token" } else { b"" },
            number,
            payload: bytes,
        };
        let sealed = if action & 2 != 0 { sealed.seal() } else { None };
        number = number.wrapping_add(1);
        let (src_port, dst_port) = if from_client { (50_000, 443) } else { (443, 50_000) };
        let record =
            PacketRecord { ts_ns, src_port, dst_port, protocol: 17, ..PacketRecord::EMPTY };
        let bytes = sealed.as_deref().unwrap_or(bytes);
        let mut in_message = false;
        let payload = Payload { record: &record, bytes, sequence: 0 };
        let _ = Quic::read(&mut state, &payload, &mut |kind, _| {
            in_message |= kind == Kind::Protocol;
            assert!(in_message, "{kind:?} outside a message");
        });
        assert!(state.connections.memory() <= MEMORY);
    }
    state.dropped(true, &mut |_, _| {});
}
