//! The classic BPF program that distributes frames over queues.
//!
//! ```text
//!  Ethernet: start ─▶ type ─▶ VLAN tags? skip (up to 3) ─▶ IPv4: a = source, b = destination
//!  no link header:     version nibble                      IPv6: the same, four words each
//!                                                          else: 0
//!  hash = mix((a ^ b) · k0 + (a + b) · k1), the kernel computes it modulo the number of queues
//! ```
//!
//! Invariants: the hash uses the addresses only, and symmetrically. So both directions and all
//! fragments of a datagram go to the same queue. The program cannot fail: a frame that is too short
//! goes to the first queue.
//!
//! Offsets: when the kernel runs the program, a received frame begins after its Ethernet header and
//! a sent frame begins at its Ethernet header. Offsets from the network header do not work for
//! both: for a sent frame the kernel sets the network header before or after the tags, depending on
//! how the frame was sent.

use libc::sock_filter;

// Instruction classes, sizes, modes, operations and sources from linux/filter.h that the program
// uses.
const LOAD: u16 = 0x00;
const LOAD_X: u16 = 0x01;
const STORE: u16 = 0x02;
const STORE_X: u16 = 0x03;
const ALU: u16 = 0x04;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const MISC: u16 = 0x07;
const WORD: u16 = 0x00;
const HALF: u16 = 0x08;
const BYTE: u16 = 0x10;
const IMMEDIATE: u16 = 0x00;
const ABSOLUTE: u16 = 0x20;
const INDIRECT: u16 = 0x40;
const MEMORY: u16 = 0x60;
const ADD: u16 = 0x00;
const MULTIPLY: u16 = 0x20;
const AND: u16 = 0x50;
const SHIFT_RIGHT: u16 = 0x70;
const XOR: u16 = 0xa0;
const ALWAYS: u16 = 0x00;
const EQUAL: u16 = 0x10;
const X: u16 = 0x08;
const RETURN_A: u16 = 0x10;
const A_TO_X: u16 = 0x00;
const X_TO_A: u16 = 0x80;

/// Kernel extensions: the frame's type and direction, and offsets from its network header.
const PROTOCOL: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
const DIRECTION: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
const NETWORK: u32 = libc::SKF_NET_OFF as u32;
const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
const TAGS_MOST: usize = 3;

/// Scratch words: offset of the IP header, a ^ b, a + b, and a word of a.
const START: u32 = 0;
const DIFFERENCE: u32 = 1;
const SUM: u32 = 2;
const SOURCE: u32 = 3;

/// Most queues of one fanout group of the kernel.
pub(super) const QUEUES_MOST: u16 = 256;

/// The program for frames with an Ethernet header (`ethernet`) or without a link header. `seed`
/// selects the hash function.
pub(super) fn program(ethernet: bool, seed: u64) -> Vec<sock_filter> {
    let mut code = Code::default();
    if ethernet {
        ethernet_start(&mut code)
    } else {
        bare_start(&mut code)
    }
    // From here on: the type in A, the offset of the IP header in START and X.
    let not_ipv4 = code.jump_if_not(IPV4);
    code.hash(&[12], &[16], seed);
    code.land(not_ipv4);
    let not_ipv6 = code.jump_if_not(IPV6);
    code.hash(&[8, 12, 16, 20], &[24, 28, 32, 36], seed);
    code.land(not_ipv6);
    code.push(RETURN, 0);
    code.0
}

fn ethernet_start(code: &mut Code) {
    code.push(LOAD | WORD | ABSOLUTE, DIRECTION);
    let received = code.jump_if_not(OUTGOING);
    code.push(LOAD_X | IMMEDIATE, 14);
    code.push(STORE_X, START);
    code.push(LOAD | HALF | ABSOLUTE, 12);
    let sent = code.jump();
    code.land(received);
    code.push(LOAD_X | IMMEDIATE, 0);
    code.push(STORE_X, START);
    code.push(LOAD | WORD | ABSOLUTE, PROTOCOL);
    code.land(sent);
    for _ in 0..TAGS_MOST {
        // A tag is two bytes, followed by the type of the next header.
        let [first, second, third] = TAGS.map(|tag| code.jump_if(tag));
        let untagged = code.jump();
        for tag in [first, second, third] {
            code.land(tag);
        }
        code.push(LOAD_X | MEMORY, START);
        code.push(MISC | X_TO_A, 0);
        code.push(ALU | ADD, 4);
        code.push(STORE, START);
        code.push(LOAD | HALF | INDIRECT, 2);
        code.land(untagged);
    }
    code.push(LOAD_X | MEMORY, START);
}

/// The version nibble gives the type. All offsets are from the network header, as there is no other
/// header.
fn bare_start(code: &mut Code) {
    code.push(LOAD_X | IMMEDIATE, NETWORK);
    code.push(STORE_X, START);
    code.push(LOAD | BYTE | ABSOLUTE, NETWORK);
    code.push(ALU | SHIFT_RIGHT, 4);
    let not_4 = code.jump_if_not(4);
    code.push(LOAD | IMMEDIATE, IPV4);
    let is_4 = code.jump();
    code.land(not_4);
    let not_6 = code.jump_if_not(6);
    code.push(LOAD | IMMEDIATE, IPV6);
    code.land(not_6);
    code.land(is_4);
}

/// A program under construction.
#[derive(Default)]
struct Code(Vec<sock_filter>);

/// A jump whose target is not known yet.
struct Pending {
    at: usize,
    when_true: bool,
}

impl Code {
    fn push(&mut self, code: u16, k: u32) {
        self.0.push(sock_filter { code, jt: 0, jf: 0, k });
    }

    fn branch(&mut self, code: u16, k: u32, when_true: bool) -> Pending {
        self.push(code, k);
        Pending { at: self.0.len() - 1, when_true }
    }

    fn jump_if(&mut self, k: u32) -> Pending {
        self.branch(JUMP | EQUAL, k, true)
    }

    fn jump_if_not(&mut self, k: u32) -> Pending {
        self.branch(JUMP | EQUAL, k, false)
    }

    fn jump(&mut self) -> Pending {
        self.branch(JUMP | ALWAYS, 0, true)
    }

    /// Sets the jump's target to the next instruction.
    fn land(&mut self, Pending { at, when_true }: Pending) {
        let distance = self.0.len() - at - 1;
        let one = &mut self.0[at];
        if one.code == JUMP | ALWAYS {
            one.k = distance as u32;
        } else if when_true {
            one.jt = distance as u8;
        } else {
            one.jf = distance as u8;
        }
    }

    /// Returns from the program with the hash of the words at these offsets from X.
    fn hash(&mut self, source: &[u32], destination: &[u32], seed: u64) {
        // Odd, so that the multiplication loses no bits.
        let k0 = (seed as u32 ^ 0x9e37_79b1) | 1;
        let k1 = ((seed >> 32) as u32 ^ 0x85eb_ca6b) | 1;
        for scratch in [DIFFERENCE, SUM] {
            self.push(LOAD | IMMEDIATE, 0);
            self.push(STORE, scratch);
        }
        for (&from, &to) in source.iter().zip(destination) {
            for (scratch, operation) in [(DIFFERENCE, XOR), (SUM, ADD)] {
                // X holds the result of the earlier words. It is added to (word of a) ∘ (word of
                // b), and the sum is multiplied by a constant, so that the position of a word
                // matters.
                self.push(LOAD_X | MEMORY, START);
                self.push(LOAD | WORD | INDIRECT, from);
                self.push(STORE, SOURCE);
                self.push(LOAD | WORD | INDIRECT, to);
                self.push(LOAD_X | MEMORY, SOURCE);
                self.push(ALU | operation | X, 0);
                self.push(LOAD_X | MEMORY, scratch);
                self.push(ALU | ADD | X, 0);
                self.push(ALU | MULTIPLY, if operation == XOR { k0 } else { k1 });
                self.push(STORE, scratch);
                self.push(MISC | A_TO_X, 0);
                self.push(ALU | SHIFT_RIGHT, 15);
                self.push(ALU | XOR | X, 0);
                self.push(STORE, scratch);
            }
        }
        self.push(LOAD_X | MEMORY, DIFFERENCE);
        self.push(LOAD | MEMORY, SUM);
        self.push(ALU | ADD | X, 0);
        self.push(ALU | MULTIPLY, k0);
        self.push(ALU | SHIFT_RIGHT, 16);
        self.push(ALU | AND, 0xffff);
        self.push(RETURN | RETURN_A, 0);
    }
}
