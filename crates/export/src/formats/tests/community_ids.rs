//! Community IDs against the baseline of the specification, and against ids computed by another implementation.

use proptest::prelude::*;
use ringtap_flow::FlowRecord;

use super::{any_record, key, record};
use crate::formats::CommunityId;

/// (protocol, source, destination, ports or ICMP type and code, id).
type Known = (u8, &'static str, &'static str, (u16, u16), &'static str);

/// From the baseline of the specification: the ids of its reference implementation for its captures.
const BASELINE: &[Known] = &[
    (6, "128.232.110.120", "66.35.250.204", (34855, 80), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    (6, "66.35.250.204", "128.232.110.120", (80, 34855), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    (
        6,
        "2001:470:e5bf:dead:4957:2174:e82c:4887",
        "2607:f8b0:400c:c03::1a",
        (63943, 25),
        "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
    ),
    (17, "192.168.1.52", "8.8.8.8", (54585, 53), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
    (17, "8.8.8.8", "192.168.1.52", (53, 54585), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
    (132, "192.168.170.8", "192.168.170.56", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
    (132, "192.168.170.56", "192.168.170.8", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
    (46, "10.1.12.1", "10.1.12.2", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
    (46, "10.1.12.2", "10.1.12.1", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
    (1, "192.168.0.89", "192.168.0.1", (8, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
    (1, "192.168.0.1", "192.168.0.89", (0, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
    (1, "10.0.0.1", "10.0.0.2", (11, 0), "1:YHxtAirCG//0OzkcVAukqKQN9xM="),
    (
        58,
        "fe80::200:86ff:fe05:80da",
        "fe80::260:97ff:fe07:69ea",
        (135, 0),
        "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        (136, 0),
        "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        (135, 0),
        "1:zavyT/cezQr1fmImYCwYnMXbgck=",
    ),
    (
        58,
        "3ffe:501:1800:2345::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        (3, 0),
        "1:2ObVBgIn28oZvibYZhZMBgh7WdQ=",
    ),
    (
        58,
        "3ffe:507:0:1:200:86ff:fe05:80da",
        "3ffe:501:0:1001::2",
        (128, 0),
        "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
    ),
    (
        58,
        "3ffe:501:0:1001::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        (129, 0),
        "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
    ),
    (58, "fe80::200:86ff:fe05:80da", "ff02::2", (133, 0), "1:hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
    (58, "fe80::260:97ff:fe07:69ea", "ff02::1", (134, 0), "1:pkvHqCL88/tg1k4cPigmZXUtL00="),
];

/// Cases that the baseline does not have, computed by an implementation in another language that reproduces the whole
/// baseline.
const COMPUTED: &[Known] = &[
    (6, "10.0.0.7", "10.0.0.7", (5000, 80), "1:tKNgtB7ewoLjzkIOZHYVGTGfRK8="),
    (6, "10.0.0.7", "10.0.0.7", (80, 5000), "1:tKNgtB7ewoLjzkIOZHYVGTGfRK8="),
    (17, "2001:db8::1", "2001:db8::2", (53, 40000), "1:eGdaE36ivsxnM3NpfgD06A5eRj8="),
    (132, "10.9.0.2", "10.9.0.1", (2905, 2906), "1:laqW/6+jWQ+9o3Z3zHpnPXp+MlQ="),
    // Ports that the id does not contain.
    (136, "10.9.0.2", "10.9.0.1", (7, 9), "1:Nh4P7ipLRU09rftAbpz+6qU41Tw="),
    (33, "10.9.0.2", "10.9.0.1", (7, 9), "1:YL4BJvkUHVCbKejavvkPRHjoIDw="),
    (47, "10.9.0.2", "10.9.0.1", (0, 0), "1:Ha8Sdh495jvqeCJ1xqWqRJml56A="),
    // Types without a counterpart: the id contains code and direction.
    (1, "10.0.0.2", "10.0.0.1", (3, 3), "1:LhjXG72oBqb/FpYqPl9LboG4/B4="),
    (1, "10.0.0.1", "10.0.0.2", (3, 3), "1:sn6MAmXQ6UD1gYE1XbV3XTNewrk="),
    (58, "2001:db8::2", "2001:db8::1", (1, 4), "1:qxd1LeYGiZWewhdgFCEH4g39f1w="),
    // Types with a counterpart.
    (1, "10.0.0.9", "224.0.0.1", (9, 0), "1:aKGqmmD05208l3yuRg5elOJJMIA="),
    (1, "10.0.0.5", "224.0.0.2", (10, 0), "1:1gi8p/OlXFYJ/xXe/hCx5tE562k="),
    (1, "10.0.0.5", "10.0.0.4", (13, 0), "1:eYKyJJ5FQ13cFNJ2T+ABQUXNwck="),
    (1, "10.0.0.4", "10.0.0.5", (14, 0), "1:eYKyJJ5FQ13cFNJ2T+ABQUXNwck="),
    (1, "10.0.0.5", "10.0.0.4", (15, 0), "1:7F1Sk3Q6cJ8VGR5PUkB3cKy6hGQ="),
    (1, "10.0.0.5", "10.0.0.4", (17, 0), "1:QGYlGms4SYRW10gCkfQe+JKQz6I="),
    (58, "2001:db8::2", "2001:db8::1", (130, 0), "1:xps6Lwc0qSxO2d8X+k4jnhqfpP0="),
    (58, "2001:db8::2", "2001:db8::1", (139, 0), "1:EyvsTyxh629HwHG1XyqvKuccnPM="),
    (58, "2001:db8::2", "2001:db8::1", (144, 0), "1:tpS7VP1V1DNOq0L6LOxDDupNGcA="),
];

#[test]
fn community_ids_are_those_of_the_specification() {
    for &(protocol, source, destination, pair, id) in BASELINE.iter().chain(COMPUTED) {
        let record = if matches!(protocol, 1 | 58) {
            let icmp_type_code = pair.0 << 8 | pair.1;
            FlowRecord { icmp_type_code, ..record(key(protocol, source, destination, (0, 0))) }
        } else {
            record(key(protocol, source, destination, pair))
        };
        let found = CommunityId::of(&record);
        assert_eq!(
            found.to_string(),
            id,
            "protocol {protocol}, {source} to {destination} {pair:?}"
        );
        assert_eq!(found.as_bytes(), id.as_bytes());
    }
}

/// The counterpart relation of ICMP types is symmetric, and both have the same id.
#[test]
fn a_request_and_its_answer_have_one_id() {
    let id = |protocol, from, to, icmp_type: u8, code: u8| {
        let icmp_type_code = u16::from_be_bytes([icmp_type, code]);
        let key = key(protocol, from, to, (0, 0));
        CommunityId::of(&FlowRecord { icmp_type_code, ..record(key) })
    };
    let ends = [(1, "10.0.0.2", "10.0.0.1"), (58, "2001:db8::1", "2001:db8::2")];
    let mut pairs = Vec::new();
    for (protocol, from, to) in ends {
        for request in 0..=u8::MAX {
            let asked = id(protocol, from, to, request, 7);
            let answers: Vec<u8> =
                (0..=u8::MAX).filter(|&reply| id(protocol, to, from, reply, 7) == asked).collect();
            assert!(answers.len() <= 1, "{protocol}: {request} has {answers:?}");
            pairs.extend(answers.into_iter().map(|answer| (protocol, request, answer)));
        }
    }
    let mut known = Vec::new();
    for (protocol, a, b) in [
        (1, 0, 8),
        (1, 9, 10),
        (1, 13, 14),
        (1, 15, 16),
        (1, 17, 18),
        (58, 128, 129),
        (58, 130, 131),
        (58, 133, 134),
        (58, 135, 136),
        (58, 139, 140),
        (58, 144, 145),
    ] {
        known.extend([(protocol, a, b), (protocol, b, a)]);
    }
    known.sort_unstable();
    // Type 7 has no counterpart, and its code is 7 here: the ports are equal, so its id has a direction only if one-way
    // messages keep theirs.
    assert_eq!(pairs, known);
}

proptest! {
    /// Both directions of a flow with ports have the same id.
    #[test]
    fn an_id_has_no_direction(record in any_record()) {
        prop_assume!(!matches!(record.key.protocol, 1 | 58));
        let reversed = FlowRecord { key: record.key.reversed(), ..record.clone() };
        prop_assert_eq!(CommunityId::of(&record), CommunityId::of(&reversed));
    }
}
