//! Frames copied from a template inside the kernel: a test run of an XDP program
//! (`BPF_PROG_TEST_RUN` with live frames) that really sends them.
//!
//! ```text
//!  template ─▶ kernel: page n ─▶ program: template, address, port, checksums ─▶ interface
//!                                of flow i = (n · odd) mod flows
//! ```
//!
//! This is the fastest method to load a receiver on the same machine: it needs no socket and no
//! system call per frame.
//!
//! The kernel copies the template into a page once. It uses the page again after the receiver has
//! freed it, with all changes by the receiver: a router changes MAC addresses, TTL and checksum in
//! place. So the program holds the template as constants and writes the whole template for each
//! frame.
//!
//! The interface must be able to send XDP frames. A veth forwards them only if its peer has an XDP
//! program or `gro on`; otherwise the kernel drops them and reports nothing. So
//! [`LiveSender::left`] reads the interface's counter. For an exact number, count at the receiving
//! end.

use std::io;

use super::template::{Template, Transport};
use crate::live::capability::Capability;
use crate::live::code::{
    R, Size, add, add_32, add_register, and_32, call, copy, exit, load, map_value, multiply_32,
    set, shift_right, skip, skip_if_greater, store, store_value, to_network, xor_32,
};
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::state::State;
use crate::live::sys::bpf::{Map, MapKind, Program};

/// Offset of the frame's start and end in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const REDIRECT: i32 = 23;
const ABORTED: i32 = 0;

/// Spreads consecutive numbers over the flows. It is odd, so each round has every flow once.
const SPREAD: u32 = 0x9e37_79b1;

/// Bytes of the Ethernet header and a VLAN tag.
const HEADERS: usize = 18;

/// Frames that the kernel makes before it passes them to the interface.
const BATCH: u32 = 64;

/// Most frames of one system call, so that a signal takes effect soon.
const CALL_MOST: u64 = 1 << 20;

/// Sends copies of a template as XDP live frames.
pub struct LiveSender {
    interface: Interface,
    template: Template,
    program: Program,
    /// One counter: the frames that the program has made.
    count: Map,
    made: u64,
    left_before: u64,
}

impl LiveSender {
    /// Opens the interface called `name` to send copies of `template`. The copies belong to `flows`
    /// flows, a power of two: source address and source port are those of the template plus the
    /// flow's number.
    ///
    /// # Errors
    /// If there is no such interface, if the template is invalid
    /// ([`TemplateError`](super::TemplateError)), or if the process lacks the capabilities.
    pub fn open(name: &str, template: &[u8], flows: u32) -> Result<Self, OpenError> {
        let interface = Interface::open(name)?;
        // Longest frame that an XDP program may send: MTU, Ethernet header and one VLAN tag, for
        // tagged and untagged frames.
        let most = interface.link.mtu as usize + HEADERS;
        let template = Template::new(template, flows, most)?;
        let doing = "loading an XDP program for sending";
        let count = Map::new(MapKind::Array, 1).map_err(OpenError::at(doing, Capability::LIVE))?;
        let code = instructions(&template, interface.link.index as i32, count.number());
        let program =
            Program::load("ringtap_send", &code).map_err(OpenError::at(doing, Capability::LIVE))?;
        let left_before = interface.link.tx_packets;
        Ok(Self { interface, template, program, count, made: 0, left_before })
    }

    /// Makes `count` frames and passes them to the interface. Returns how many it made: fewer than
    /// `count` only after a signal.
    ///
    /// # Errors
    /// If the kernel makes no frame at all.
    pub fn send(&mut self, count: u64) -> io::Result<u64> {
        let before = self.made;
        while self.made - before < count {
            let some = (count - (self.made - before)).min(CALL_MOST) as u32;
            let run = self.program.run_live(&self.template.frame, some, BATCH.min(some));
            let made = std::mem::replace(&mut self.made, self.count.number_at(0)?);
            match run {
                Err(error) if self.made == before => return Err(error),
                // Stopped by a signal. The second arm cannot occur: the call succeeds but makes no
                // frame.
                Err(_) => break,
                Ok(()) if self.made == made => break,
                Ok(()) => {}
            }
        }
        Ok(self.made - before)
    }

    /// Current state of the interface.
    pub fn state(&self) -> State {
        self.interface.state()
    }

    /// Frames that the interface has sent since this sender was opened, those of other senders
    /// included. The driver counts them, with some drivers after a short delay.
    ///
    /// # Errors
    /// If the interface is gone or cannot be read.
    pub fn left(&self) -> io::Result<u64> {
        let link = self.interface.current_link()?;
        let link = link.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        Ok(link.tx_packets.saturating_sub(self.left_before))
    }
}

// Registers: the frame, the flow's number, its address and its port; A and B are scratch registers.
const FRAME: R = R(6);
const FLOW: R = R(7);
const ADDRESS: R = R(8);
const PORT: R = R(9);
const A: R = R(0);
const B: R = R(1);

fn instructions(template: &Template, interface: i32, count: i32) -> Vec<u64> {
    let ip = template.ip as i16;
    let mut code = vec![
        load(Size::Word, FRAME, R(1), DATA),
        load(Size::Word, A, R(1), DATA_END),
        copy(B, FRAME),
        add(B, template.frame.len() as i32),
        // Copies are as long as the template, but the verifier requires the check.
        skip_if_greater(B, A, 1),
        skip(2),
        set(R(0), ABORTED),
        exit(),
    ];
    write(&mut code, &template.frame);
    code.extend(map_value(B, count));
    code.extend([
        load(Size::Double, FLOW, B, 0),
        copy(A, FLOW),
        add(A, 1),
        store(Size::Double, B, 0, A),
        multiply_32(FLOW, SPREAD),
        and_32(FLOW, template.flows - 1),
        copy(ADDRESS, FLOW),
        add_32(ADDRESS, template.source),
        copy(A, ADDRESS),
        to_network(A, 32),
        store(Size::Word, FRAME, ip + 12, A),
        set(A, template.ip_sum as i32),
    ]);
    add_address(&mut code);
    checksum(&mut code, ip + 10);
    if let Some(Transport { at, port, checksum: covered }) = &template.transport {
        let at = *at as i16;
        code.extend([
            copy(PORT, FLOW),
            add_32(PORT, u32::from(*port)),
            and_32(PORT, 0xffff),
            copy(A, PORT),
            to_network(A, 16),
            store(Size::Half, FRAME, at, A),
        ]);
        if let &Some((offset, sum)) = covered {
            code.extend([set(A, sum as i32), add_register(A, PORT)]);
            add_address(&mut code);
            checksum(&mut code, at + offset as i16);
        }
    }
    code.extend([set(R(1), interface), set(R(2), 0), call(REDIRECT), exit()]);
    code
}

/// Writes the whole frame: eight bytes per instruction where they fit a sign-extended 32-bit
/// constant, otherwise four.
fn write(code: &mut Vec<u64>, frame: &[u8]) {
    let mut at = 0;
    let mut store = |size, value| {
        code.push(store_value(size, FRAME, at as i16, value));
        at += match size {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
            Size::Double => 8,
        };
    };
    let (eights, rest) = frame.as_chunks();
    for eight in eights {
        let value = i64::from_ne_bytes(*eight);
        if let Ok(value) = i32::try_from(value) {
            store(Size::Double, value);
        } else {
            let [a, b, c, d, e, f, g, h] = *eight;
            store(Size::Word, i32::from_ne_bytes([a, b, c, d]));
            store(Size::Word, i32::from_ne_bytes([e, f, g, h]));
        }
    }
    let (twos, rest) = rest.as_chunks();
    twos.iter().for_each(|&two| store(Size::Half, u16::from_ne_bytes(two).into()));
    rest.iter().for_each(|&one| store(Size::Byte, one.into()));
}

/// Adds both halves of the address to A.
fn add_address(code: &mut Vec<u64>) {
    code.extend([
        copy(B, ADDRESS),
        shift_right(B, 16),
        add_register(A, B),
        copy(B, ADDRESS),
        and_32(B, 0xffff),
        add_register(A, B),
    ]);
}

/// Folds the sum in A and writes its Internet checksum.
fn checksum(code: &mut Vec<u64>, at: i16) {
    // The first fold leaves at most 17 bits, the second 16.
    for _ in 0..2 {
        code.extend([copy(B, A), shift_right(B, 16), and_32(A, 0xffff), add_register(A, B)]);
    }
    code.extend([xor_32(A, 0xffff), to_network(A, 16), store(Size::Half, FRAME, at, A)]);
}
