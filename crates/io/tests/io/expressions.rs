//! Filter expressions, if libpcap is installed.

use ringtap_io::bpf::{Expression, ExpressionError};
use ringtap_wire::LinkType;

/// The expression; `None`, with a message, without libpcap.
fn expression(text: &str) -> Option<Result<Expression, ExpressionError>> {
    match Expression::new(text) {
        Err(error @ ExpressionError::NoLibrary(_)) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        other => Some(other),
    }
}

/// A datagram from 10.0.0.1 port 1000 to 10.0.0.2 port 53, beginning with its IP header.
fn datagram() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0x03, 0xe8, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    packet
}

fn ethernet(tag: &[u8]) -> Vec<u8> {
    [&[2; 12], tag, &[0x08, 0x00], &datagram()].concat()
}

#[test]
fn frames_are_selected_by_their_contents() {
    let frame = ethernet(&[]);
    let tagged = ethernet(&[0x81, 0x00, 0x00, 0x07]);
    for (text, plain, in_vlan) in [
        ("udp port 53", true, false),
        ("tcp port 53", false, false),
        ("src net 10.0.0.0/24 and not dst host 10.0.0.3", true, false),
        ("vlan 7 and host 10.0.0.2", false, true),
        ("udp port 53 or (vlan and udp port 53)", true, true),
        ("greater 46 and less 46", true, false),
        ("ether[0] = 2", true, true),
        ("", true, true),
    ] {
        let Some(expression) = expression(text) else { return };
        let expression = expression.unwrap();
        let selects = |frame: &[u8]| {
            expression.selects(LinkType::ETHERNET, frame, frame.len() as u32).unwrap()
        };
        assert_eq!((selects(&frame), selects(&tagged)), (plain, in_vlan), "{text}");
        assert_eq!(expression.text(), text);
    }
}

/// libpcap compares only the next header in the IPv6 header itself, whatever the lengths.
#[test]
fn a_transport_behind_an_extension_header_needs_protochain() {
    let packet = |declared: u16, next: u8, extension: &[u8]| {
        let addresses = [[1; 16], [2; 16]].concat();
        let mut frame = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
        frame.extend(declared.to_be_bytes());
        frame.extend([next, 64]);
        frame.extend(addresses);
        frame.extend(extension);
        frame.extend([0, 9, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.resize(frame.len() + usize::from(declared == 0) * 70_000, 7);
        frame
    };
    let jumbo = [&[6, 0, 0xc2, 4][..], &70_028_u32.to_be_bytes()].concat();
    let frames = [
        packet(20, 6, &[]),
        packet(0, 6, &[]),
        packet(28, 0, &[6, 0, 1, 4, 0, 0, 0, 0]),
        packet(0, 0, &jumbo),
    ];
    for (text, selected) in [
        ("tcp", [true, true, false, false]),
        ("tcp port 80", [true, true, false, false]),
        ("tcp or ip6 protochain 6", [true; 4]),
        ("udp or ip6 protochain 17", [false; 4]),
    ] {
        let Some(expression) = expression(text) else { return };
        let expression = expression.unwrap();
        let selects = frames.each_ref().map(|frame| {
            expression.selects(LinkType::ETHERNET, frame, frame.len() as u32).unwrap()
        });
        assert_eq!(selects, selected, "{text}");
    }
}

#[test]
fn each_link_type_has_its_own_program() {
    let Some(expression) = expression("udp dst port 53") else { return };
    let expression = expression.unwrap();
    let packet = datagram();
    let selects = |link, frame: &[u8]| expression.selects(link, frame, frame.len() as u32);
    for link in [LinkType::RAW, LinkType::RAW_BSD, LinkType::RAW_OPENBSD, LinkType::IPV4] {
        assert_eq!(selects(link, &packet), Some(true), "{link:?}");
        assert_eq!(selects(link, &ethernet(&[])), Some(false), "{link:?}");
    }
    let cooked = [&[0; 14][..], &[0x08, 0x00], &packet].concat();
    assert_eq!(selects(LinkType::LINUX_SLL, &cooked), Some(true));
    // The address family of another system, in another byte order.
    let loopback = [&[0, 0, 0, 30][..], &packet].concat();
    assert_eq!(selects(LinkType::NULL, &loopback), Some(true));
    assert_eq!(selects(LinkType::LOOP, &loopback), Some(true));
    assert_eq!(selects(LinkType::NULL, &loopback[..3]), Some(false));
    // An unknown link type.
    assert_eq!(selects(LinkType(147), &packet), None);
}

#[test]
fn bytes_that_were_not_captured_never_match() {
    let Some(expression) = expression("udp port 53 and udp[8] = 1") else { return };
    let expression = expression.unwrap();
    let frame = ethernet(&[]);
    for captured in 0..frame.len() {
        let selected =
            expression.selects(LinkType::ETHERNET, &frame[..captured], frame.len() as u32);
        // The first byte of the payload is the 43rd.
        assert_eq!(selected, Some(captured > 42), "{captured} bytes");
    }
}

#[test]
fn an_expression_may_be_invalid_for_a_link_type() {
    let Some(expression) = expression("vlan 5") else { return };
    let expression = expression.unwrap();
    assert_eq!(expression.selects(LinkType::ETHERNET, &ethernet(&[]), 46), Some(false));
    assert_eq!(expression.selects(LinkType::IPV4, &datagram(), 32), None);
}

#[test]
fn threads_share_an_expression() {
    let Some(expression) = expression("udp port 53") else { return };
    let expression = expression.unwrap();
    let frame = ethernet(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let selects = || expression.selects(LinkType::ETHERNET, &frame, 46);
                assert!((0..1000).all(|_| selects() == Some(true)));
            });
        }
    });
}

#[test]
fn errors_contain_the_message_of_libpcap() {
    for (text, message) in [
        ("tcp prt 80", "syntax error"),
        ("port 70000", "70000"),
        ("ip and ip6", "no frame can match"),
        ("host 10.0.0.1\0", "zero byte"),
        ("((", "syntax error"),
        ("net 10.0.0.1/24", "non-network bits"),
    ] {
        let Some(made) = expression(text) else { return };
        let error = made.unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    assert_eq!(Expression::new(&"x".repeat(20_000)).unwrap_err(), ExpressionError::TooLong(20_000));
}

/// Expressions as deep and as wide as the maximum length allows: they may be rejected, but without delay.
#[test]
fn very_long_expressions_end() {
    let open = "(".repeat(4_096);
    let nots = "not ".repeat(1_000) + "ip";
    let ors = "tcp or ".repeat(580) + "udp";
    let ports: String = (1..300).map(|port| format!("port {port} or ")).collect();
    for text in [open, nots, ors, ports + "ip"] {
        let Some(made) = expression(&text) else { return };
        if let Ok(expression) = made {
            assert_eq!(expression.selects(LinkType::ETHERNET, &[], 0), Some(false));
        }
    }
}
