//! Complete messages, octet by octet, as in the specifications.

use ringtap_export::encode::{Encoder, Ipfix, NetFlow5, NetFlow9, Progress, UDP_LIMIT};
use ringtap_export::formats::{Interface, Interfaces};
use ringtap_export::{Metered, RecordTotals, Sampling};
use ringtap_flow::{FlowRecord, Initiator, Path};

use crate::common::{answered, echo_v6, tunnelled};

/// Octets written in hexadecimal; spaces are ignored.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn message(encoder: &mut dyn Encoder) -> Vec<u8> {
    encoder.add(&answered(), &mut RecordTotals::default()).unwrap();
    let _ = encoder.add(&echo_v6(), &mut RecordTotals::default());
    let message = encoder.seal().unwrap().bytes.to_vec();
    assert_eq!(encoder.seal().unwrap().bytes, message, "sealing changes nothing");
    encoder.done();
    assert_eq!(encoder.seal(), None);
    message
}

#[test]
fn ipfix() {
    let mut encoder = Ipfix::new(0xabcd, 1, UDP_LIMIT);
    encoder.announcement();
    let expected = "
        000a 00c4  6553f102  00000040  0000abcd
        0114 0065
            0a000001 0a000002 1234 01bb 06  03 0000018bcfe5687b 0000018bcfe56be9
            0000000000000003 0000000000000102 b8 3e 40 0028 05dc  1b
            0000000000000002 0000000000000203 28 32 33 0034 ffff  12  01
            020000000001 020000000002  0007 0007 0009
        0103 004f";
    let got = message(&mut encoder);
    let head = hex(expected);
    assert_eq!(got[..head.len()], head);
    let second = "
            000102030405060708090a0b0c0d0e0f f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff 3a 8000
            03 0000018bcfe5687b 0000018bcfe56be9
            0000000000000001 0000000000000060 00 01 01 0060 0060";
    assert_eq!(got[head.len()..], hex(second));

    // Two more data records than before; templates do not count.
    let next = message(&mut encoder);
    assert_eq!(next[8..12], hex("00000042"));
    let templates = encoder.announcement();
    assert_eq!(templates[0][8..12], hex("00000044"));
    assert_eq!(templates[1][8..12], hex("00000044"));
    encoder.restart();
    assert_eq!(message(&mut encoder)[8..12], hex("00000000"), "a new connection begins at 0");
}

#[test]
fn ipfix_of_a_tunnel_has_the_outer_header_first() {
    let mut encoder = Ipfix::new(0, 1, UDP_LIMIT);
    encoder.add(&tunnelled(), &mut RecordTotals::default()).unwrap();
    let got = encoder.seal().unwrap().bytes;
    let head = hex("
        012c 0084
            c0000201 c0000202 11  0100000000abcdef 00000000 00000000
            0a000001 0a000002 1234 01bb 06  03 0000018bcfe5687b 0000018bcfe56be9");
    assert_eq!(got[16..16 + head.len()], head);
    assert!(got.ends_with(&hex("020000000001 020000000002  0007 0007 0009  123450 000000")));
}

/// Returns true if a message contains these octets.
fn has(messages: &[Vec<u8>], octets: &str) -> bool {
    let octets = hex(octets);
    messages.iter().any(|one| one.windows(octets.len()).any(|part| part == octets))
}

#[test]
fn ipfix_templates() {
    let messages = Ipfix::new(0, 1, UDP_LIMIT).announcement();
    // Template 276: answered flows over IPv4, with VLAN tags.
    assert!(has(
        &messages,
        "
        0114 001e
        0008 0004  000c 0004  0007 0002  000b 0002  0004 0001  0088 0001  0098 0008  0099 0008
        0002 0008  0001 0008  0005 0001  0034 0001  0035 0001  0019 0002  001a 0002  0006 0001
        8002 0008 00007279  8001 0008 00007279  8005 0001 00007279  8034 0001 00007279
        8035 0001 00007279  8019 0002 00007279  801a 0002 00007279  8006 0001 00007279
        00ef 0001  0038 0006  0050 0006  003a 0002  00f3 0002  00f5 0002"
    ));
    // Options templates, one scope field each.
    for options in [
        "0140 0004 0001  0095 0004  0029 0008  002a 0008  0028 0008",
        "0141 0006 0001  0090 0004  00a6 0008  00a7 0008  00a8 0008  0098 0008  0099 0008",
        "0142 0002 0001  0091 0002  00ad 0008",
        "0143 0006 0001  0095 0004  0056 0008  00a4 0008  00a5 0008  0098 0008  0099 0008",
        "0144 0006 0001  012e 0008  0130 0002  0022 0004  0023 0001  0131 0004  0132 0004",
        "0145 0005 0001  012e 0008  0130 0002  0022 0004  0023 0001  0137 0008",
    ] {
        assert!(has(&messages, options), "{options}");
    }
    // The fields of the key: the first five, for ICMP the first three, and inside a tunnel those after the six outer
    // ones.
    let keys = "0142 0284 0100 000000000000001f 0101 000000000000001f 0102 0000000000000007";
    assert!(messages.last().unwrap()[16..].starts_with(&hex(keys)));
    assert!(has(&messages, "0120 00000000000007c0"));
    // Template 276 also has the VLAN tags, if they are in the key.
    let keyed = Ipfix::new(0, 1, UDP_LIMIT).keyed_by_vlans(true).announcement();
    assert!(has(&keyed, "0114 000000003000001f") && !has(&messages, "0114 000000003000001f"));
    // For flows from interfaces each template ends with ingressInterface, in both directions if they are answered.
    let live = Ipfix::new(0, 1, UDP_LIMIT).with_ingress(true).announcement();
    let last = "00ef 0001  0038 0006  0050 0006  003a 0002  00f3 0002  00f5 0002";
    assert!(has(&live, &format!("{last}  000a 0004  800a 0004 00007279")));
    assert!(has(&live, "0114 0020") && !has(&messages, "000a 0004"));
    let farewell = Ipfix::new(0, 1, UDP_LIMIT).farewell().concat();
    assert_eq!(farewell.len(), 16 + 4 + 64 * 4);
    assert!(farewell[16..].starts_with(&hex("0002 0104  0100 0000  0101 0000")), "withdrawals");
}

#[test]
fn statistics_contain_losses_and_when_they_were_noticed() {
    let mut encoder = Ipfix::new(7, 3, UDP_LIMIT);
    encoder.add(&answered(), &mut RecordTotals::default()).unwrap();
    encoder.done();
    let metered = Metered { packets: 9, ignored_packets: 4, ignored_octets: 5 };
    let not_sent = RecordTotals { records: 1, packets: 2, octets: 3 };
    let progress = Progress { not_sent, metered: Some(metered), ..Progress::default() };
    let expected = "
        0141 0030  00000003 0000000000000001 0000000000000002 0000000000000003
                   0000018bcfe56be9 0000018bcfe56be9
        0143 0030  00000007 0000000000000009 0000000000000004 0000000000000005
                   0000018bcfe56be9 0000018bcfe56be9";
    assert!(has(&encoder.statistics(&progress), expected));
}

#[test]
fn sampling_is_announced() {
    let random = Some(Sampling::Random(1000));
    let systematic = Some(Sampling::Systematic(1000));
    let ipfix = |sampling| Ipfix::new(0, 1, UDP_LIMIT).sampled(sampling).announcement();
    assert!(has(
        &ipfix(systematic),
        "0144 001b 0000000000000001 0001 000003e8 01 00000001 000003e7"
    ));
    assert!(has(&ipfix(random), "0145 001b 0000000000000001 0004 000003e8 02 3f50624dd2f1a9fc"));
    let v9 = NetFlow9::new(7, UDP_LIMIT).sampled(random).announcement();
    assert!(has(&v9, "0141 0004 0014 0001 0004 0022 0004 0023 0001 0030 0001 0031 0001 0032 0004"));
    assert!(has(&v9, "0141 0014 00000007 000003e8 02 01 02 000003e8 00"));
    let mut v5 = NetFlow5::new(0, UDP_LIMIT).sampled(random);
    assert_eq!(message(&mut v5)[22..24], hex("83e8"));
    assert!(!has(&ipfix(None), "0000000000000001 0001 000003e8"));
}

#[test]
fn names_of_interfaces_and_of_the_domain_are_announced() {
    let one = |index, name: &str, description: &str| Interface {
        index,
        name: name.to_owned(),
        description: description.to_owned(),
    };
    // A device of DPDK has no number.
    let both = [one(7, "eth0", "uplink"), one(0, "0000:01:00.0", ""), one(70_000, "a\nb", "")];
    let interfaces = Interfaces::new(&both);
    let zeros = |text: &str, len: usize| text.to_owned() + &"00".repeat(len - text.len() / 2);
    let names = |number: &str, name: &str, description: &str| {
        format!("{number} {number} {} {}", zeros(name, 32), zeros(description, 64))
    };
    let first = names("00000007", "65746830", "75706c696e6b");
    let second = names("00011170", "61efbfbd62", "61efbfbd62");
    let template = "0146 0004 0001  000a 0004  000a 0004  0052 0020  0053 0040";
    let domain = "0147 0002 0001  0095 0004  012c 0040";
    let ipfix = Ipfix::new(9, 1, UDP_LIMIT);
    let bare = Ipfix::new(9, 1, UDP_LIMIT).announcement();
    assert!(!has(&bare, template) && !has(&bare, domain));
    let got = ipfix.with_names_of(&interfaces).with_domain_name(Some("site b")).announcement();
    assert!(has(&got, template) && has(&got, domain));
    assert!(has(&got, &format!("0146 00d4 {first} {second}")), "one set");
    assert!(has(&got, &format!("0147 0048 00000009 {}", zeros("736974652062", 64))));

    let got = NetFlow9::new(9, UDP_LIMIT).with_names_of(&interfaces).announcement();
    assert!(has(&got, "0142 0004 000c  0002 0004  000a 0004  0052 0020  0053 0040"));
    assert!(has(&got, &format!("0142 006c {first}")) && has(&got, &format!("0142 006c {second}")));
    assert!(!has(&NetFlow9::new(9, UDP_LIMIT).announcement(), "0052 0020"));
}

#[test]
fn netflow9() {
    let mut encoder = NetFlow9::new(0xabcd, UDP_LIMIT);
    let sequence = encoder.announcement().len();
    let got = message(&mut encoder);
    // The first record's last packet is 2^31 ms after the chosen start; the header 999 ms later, at a whole second.
    let mut expected = hex("
        0009 0003  800003e7  6553f102  00000000  0000abcd
        0108 0040
            0a000001 0a000002 1234 01bb 06  03 7ffffc92 80000000
            0000000000000003 0000000000000102 b8 3e 40 0028 05dc  1b  0007 020000000001 020000000002
        0104 0034
            0a000002 0a000001 01bb 1234 06  03 7ffffc92 80000000
            0000000000000002 0000000000000203 28 32 33 0034 ffff  12  0007
        0103 0048
            000102030405060708090a0b0c0d0e0f f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff 3a 8000
            03 7ffffc92 80000000  0000000000000001 0000000000000060 00 01 01 0060 0060  00");
    expected[15] = sequence as u8;
    assert_eq!(got, expected);
}

#[test]
fn netflow5() {
    let mut encoder = NetFlow5::new(0x0102, UDP_LIMIT);
    assert!(encoder.announcement().is_empty());
    let got = message(&mut encoder);
    let expected = hex("
        0005 0002  800003e7  6553f102  00000000  00000000  0102 0000
        0a000001 0a000002 00000000 0000 0000 00000003 00000102 7ffffc92 80000000
            1234 01bb 00 1b 06 b8 0000 0000 00 00 0000
        0a000002 0a000001 00000000 0000 0000 00000002 00000203 7ffffc92 80000000
            01bb 1234 00 12 06 28 0000 0000 00 00 0000");
    assert_eq!(got, expected);
    assert_eq!(message(&mut encoder)[16..20], hex("00000002"), "flows, not messages");
}

#[test]
fn netflow5_has_the_input_interface_of_the_first_packet_s_direction() {
    let with = |initiator, ingress| {
        let path = Path { ingress, ..answered().path };
        let mut encoder = NetFlow5::new(0, UDP_LIMIT);
        encoder
            .add(&FlowRecord { path, initiator, ..answered() }, &mut RecordTotals::default())
            .unwrap();
        let bytes = encoder.seal().unwrap().bytes.to_vec();
        [24, 72].map(|at| u16::from_be_bytes([bytes[at + 12], bytes[at + 13]]))
    };
    assert_eq!(with(Initiator::Syn, 7), [7, 0]);
    assert_eq!(with(Initiator::SynAck, 7), [0, 7], "the answer came first");
    assert_eq!(with(Initiator::FirstPacket, 65_536), [0, 0], "more than the field holds");
}
