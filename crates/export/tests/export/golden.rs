//! Whole messages, octet by octet, as the documents draw them.

use ringtap_export::encode::{Encoder, Ipfix, NetFlow5, NetFlow9, UDP_LIMIT};

use crate::common::{answered, echo_v6};

/// Octets written as hex, with whatever spaces.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn message(encoder: &mut dyn Encoder) -> Vec<u8> {
    encoder.add(&answered()).unwrap();
    let _ = encoder.add(&echo_v6());
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
        000a 00a1  6553f102  00000008  0000abcd
        0104 0047
            0a000001 0a000002 1234 01bb 06 1b 03 0007
            0000000000000003 0000000000000102 0000018bcfe5687b 0000018bcfe56be9
            0000000000000002 0000000000000203 12 01
        0103 004a";
    let got = message(&mut encoder);
    let head = hex(expected);
    assert_eq!(got[..head.len()], head);
    let second = "
            000102030405060708090a0b0c0d0e0f f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff 3a 8000 03 0007
            0000000000000001 0000000000000060 0000018bcfe5687b 0000018bcfe56be9";
    assert_eq!(got[head.len()..], hex(second));

    // Two more data records than before, and none for templates.
    let next = message(&mut encoder);
    assert_eq!(next[8..12], hex("0000000a"));
    let templates = encoder.announcement();
    assert_eq!(templates[0][8..12], hex("0000000c"));
    assert_eq!(templates[1][8..12], hex("0000000c"));
    encoder.restart();
    assert_eq!(message(&mut encoder)[8..12], hex("00000000"), "a new connection begins at 0");
}

#[test]
fn ipfix_templates() {
    let messages = Ipfix::new(0, 1, UDP_LIMIT).announcement();
    // Header, set 2, and template 260: answered flows over IPv4, the fifth of eight.
    assert_eq!(messages[0][16..20], hex("0002 01e4"));
    let template = hex("
        0104 0010
        0008 0004  000c 0004  0007 0002  000b 0002  0004 0001  0006 0001  0088 0001  003a 0002
        0002 0008  0001 0008  0098 0008  0099 0008
        8002 0008 00007279  8001 0008 00007279  8006 0001 00007279  00ef 0001");
    assert!(messages[0].windows(template.len()).any(|part| part == template));
    // Options templates: statistics, reliability, flow keys, one scope field each.
    let options = hex("
        0003 0046
        0140 0004 0001  0095 0004  0029 0008  002a 0008  0028 0008
        0141 0006 0001  0090 0004  00a6 0008  00a7 0008  00a8 0008  0098 0008  0099 0008
        0142 0002 0001  0091 0002  00ad 0008");
    assert!(messages[0].ends_with(&options));
    // Which fields are the key: the first five, and of ICMP the first three.
    let keys = hex("0142 0054 0100 000000000000001f 0101 000000000000001f 0102 0000000000000007");
    assert_eq!(messages[1][16..16 + keys.len()], keys);
}

#[test]
fn netflow9() {
    let mut encoder = NetFlow9::new(0xabcd, UDP_LIMIT);
    encoder.announcement();
    let got = message(&mut encoder);
    // The first record's last packet is 2^31 ms after the chosen start; the header 999 ms later, at a whole second.
    let expected = hex("
        0009 0003  800003e7  6553f102  00000001  0000abcd
        0100 0058
            0a000001 0a000002 1234 01bb 06 1b 03 0007
            0000000000000003 0000000000000102 7ffffc92 80000000
            0a000002 0a000001 01bb 1234 06 12 03 0007
            0000000000000002 0000000000000203 7ffffc92 80000000  0000
        0103 0044
            000102030405060708090a0b0c0d0e0f f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff 3a 8000 03 0007
            0000000000000001 0000000000000060 7ffffc92 80000000  0000");
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
            1234 01bb 00 1b 06 00 0000 0000 00 00 0000
        0a000002 0a000001 00000000 0000 0000 00000002 00000203 7ffffc92 80000000
            01bb 1234 00 12 06 00 0000 0000 00 00 0000");
    assert_eq!(got, expected);
    assert_eq!(message(&mut encoder)[16..20], hex("00000002"), "flows, not messages");
}
