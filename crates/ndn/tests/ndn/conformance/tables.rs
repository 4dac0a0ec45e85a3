//! Rules about tables: the content store, and bounds of all tables.

use ringtap_ndn::forwarder::{Drop, Face, FaceId, FaceUse, Settings};
use ringtap_ndn::packets::Headers;

use crate::support::{
    A, B, Faces as _, Node, SHARED, UP, data, data_with, interest, one, texts, token,
};

/// Puts a Data into the content store: an Interest and its Data.
fn fetch(node: &mut Node, text: &str, freshness_ms: Option<u64>) {
    node.interest(A, interest(text).nonce(99).lifetime(1));
    node.take(UP, Headers::default(), &data_with(text, freshness_ms, b"content"));
}

#[test]
fn a_stored_data_answers_the_next_interest_with_its_token() {
    let mut node = Node::new();
    fetch(&mut node, "/a", None);
    let outgoing = node.take(B, token(b"of B"), &interest("/a").wire());
    assert_eq!(
        (texts(&outgoing), outgoing[0].headers.token),
        (one(B, "Data /a"), token(b"of B").token)
    );
    assert_eq!((node.forwarder.pending(), node.counters().cs_hits), (0, 1));
}

#[test]
fn data_marked_no_cache_is_not_stored() {
    let mut node = Node::new();
    node.interest(A, interest("/a"));
    let outgoing = node.take(UP, Headers { no_cache: true, ..Headers::default() }, &data("/a"));
    assert_eq!((outgoing.faces(), node.forwarder.stored()), (vec![A], 0));
}

#[test]
fn data_is_fresh_for_its_period_and_0_is_never_fresh() {
    let mut node = Node::new();
    fetch(&mut node, "/never", None);
    fetch(&mut node, "/zero", Some(0));
    fetch(&mut node, "/some", Some(100));
    let fetch_fresh = |node: &mut Node, text: &str| {
        node.interest(B, interest(text).fresh().nonce(node.now_ms as u32))[0].face
    };
    assert_eq!(["/never", "/zero", "/some"].map(|text| fetch_fresh(&mut node, text)), [UP, UP, B]);
    node.wait(99);
    assert_eq!(fetch_fresh(&mut node, "/some"), B);
    node.wait(1);
    assert_eq!(fetch_fresh(&mut node, "/some"), UP);
    assert_eq!(
        texts(&node.interest(B, interest("/some"))),
        one(B, "Data /some"),
        "stale Data satisfies without MustBeFresh"
    );
}

#[test]
fn data_received_again_is_fresh_again() {
    let mut node = Node::new();
    fetch(&mut node, "/a", Some(100));
    node.wait(200);
    node.interest(A, interest("/a").fresh().nonce(3));
    node.take(UP, Headers::default(), &data_with("/a", Some(100), b"content"));
    assert_eq!(texts(&node.interest(B, interest("/a").fresh().nonce(4))), one(B, "Data /a"));
    assert_eq!(node.forwarder.stored(), 1);
}

#[test]
fn a_prefix_matches_stored_data_only_with_can_be_prefix() {
    let mut node = Node::new();
    fetch(&mut node, "/a/b/c", None);
    assert_eq!(texts(&node.interest(B, interest("/a").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(texts(&node.interest(B, interest("/a/b").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(texts(&node.interest(B, interest("/a/b/c").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(node.interest(B, interest("/a"))[0].face, UP);
    assert_eq!(node.interest(B, interest("/a/x").prefix())[0].face, UP);
    assert_eq!(node.interest(B, interest("/a/b/c/d").prefix())[0].face, UP);
}

#[test]
fn a_look_up_by_prefix_finds_fresh_data_among_stale_data() {
    let mut node = Node::new();
    fetch(&mut node, "/a/1", Some(1_000));
    fetch(&mut node, "/a/2", None);
    fetch(&mut node, "/a/3/x", None);
    assert_eq!(texts(&node.interest(B, interest("/a").prefix().fresh())), one(B, "Data /a/1"));
    assert_eq!(
        texts(&node.interest(B, interest("/a").prefix())),
        one(B, "Data /a/3/x"),
        "the newest"
    );
}

#[test]
fn a_second_downstream_face_does_not_query_the_store() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(1));
    node.interest(B, interest("/a").nonce(2));
    assert_eq!(node.counters().cs_misses, 1);
}

#[test]
fn a_data_that_was_used_is_stored_longer_than_a_scan() {
    let mut node = Node::alone(Settings { cs_bytes: 32 << 10, ..Settings::default() });
    fetch(&mut node, "/used", None);
    node.interest(B, interest("/used"));
    for number in 0..1_000 {
        fetch(&mut node, &format!("/scan/{number}"), None);
    }
    assert!(node.counters().cs_evicted > 700);
    assert_eq!(texts(&node.interest(B, interest("/used").nonce(5))), one(B, "Data /used"));
    assert_eq!(node.interest(B, interest("/scan/0").nonce(5))[0].face, UP);
}

#[test]
fn the_store_is_bounded_in_bytes_and_stores_the_newest() {
    let mut node = Node::alone(Settings { cs_bytes: 20_000, ..Settings::default() });
    for number in 0..5_000u32 {
        let text = format!("/{}/{number}/x/y/z", number % 7);
        node.interest(A, interest(&text).nonce(number).lifetime(1));
        let size = (number * 37 % 3_000) as usize;
        node.take(UP, Headers::default(), &data_with(&text, None, &vec![1; size]));
        assert!(node.forwarder.stored_bytes() <= 20_000);
        let outgoing = node.interest(B, interest(&text).nonce(number));
        assert_eq!(
            texts(&outgoing),
            one(B, &format!("Data {text}")),
            "the newest is always stored"
        );
    }
    assert!(node.counters().cs_evicted > 4_900);
    // A Data larger than the whole store is forwarded, and evicts nothing.
    let mut small = Node::alone(Settings { cs_bytes: 1_000, ..Settings::default() });
    fetch(&mut small, "/small", None);
    small.interest(A, interest("/big"));
    assert_eq!(small.take(UP, Headers::default(), &data_with("/big", None, &[1; 4_000])).len(), 1);
    assert_eq!((small.forwarder.stored(), small.counters().cs_evicted), (1, 0));
}

#[test]
fn a_store_of_0_bytes_stores_nothing() {
    let mut node = Node::with(Settings { cs_bytes: 0, ..Settings::default() });
    fetch(&mut node, "/a", None);
    assert_eq!((node.forwarder.stored(), node.interest(B, interest("/a"))[0].face), (0, UP));
}

#[test]
fn a_full_pit_drops_and_counts_interests() {
    let mut node = Node::alone(Settings { pit_capacity: 10, ..Settings::default() });
    for number in 0..30 {
        node.interest(A, interest(&format!("/{number}")).lifetime(100));
    }
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::PitFull)), (10, 20));
    // Other faces may request pending names while there are free records.
    for face in [B, crate::support::C, crate::support::APP] {
        (0..10).for_each(|number| {
            drop(node.interest(face, interest(&format!("/{number}")).nonce(face.0).lifetime(100)))
        });
    }
    assert_eq!(node.dropped(Drop::RecordsFull), 20);
    node.wait(100);
    assert_eq!(node.forwarder.pending(), 0);
    for number in 0..10 {
        assert_eq!(
            node.interest(A, interest(&format!("/again/{number}"))).len(),
            1,
            "all entries and records are free again"
        );
    }
}

#[test]
fn a_face_beyond_its_share_gets_a_limited_number_of_nacks() {
    let mut node = Node::alone(Settings { pit_per_face: Some(1), ..Settings::default() });
    assert_eq!(node.interest(A, interest("/0").lifetime(5_000)).faces(), [UP]);
    for round in 1..=2 {
        let refuse = |number: u32| {
            let nonce = 1_000 * round + number;
            node.interest(A, interest(&format!("/{nonce}")).nonce(nonce)).len()
        };
        assert_eq!((0..150).map(refuse).sum::<usize>(), 100);
        assert_eq!(node.dropped(Drop::FaceShare), 150 * u64::from(round));
        node.wait(100);
    }
}

#[test]
fn a_face_has_at_most_its_share_pending() {
    let mut node = Node::alone(Settings { pit_per_face: Some(3), ..Settings::default() });
    for number in 0..3 {
        assert_eq!(node.interest(A, interest(&format!("/{number}")).lifetime(100)).faces(), [UP]);
    }
    let refused = node.take(A, token(b"mine"), &interest("/3").nonce(7).wire());
    assert_eq!(texts(&refused), one(A, "Nack Congestion /3"));
    assert_eq!(
        (refused[0].interest().nonce, refused[0].headers.token),
        (Some(7), token(b"mine").token)
    );
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::FaceShare)), (3, 1));
    // Interests that another face also sent count against the share; retransmissions do not.
    assert_eq!(node.interest(B, interest("/3")).faces(), [UP]);
    assert_eq!(texts(&node.interest(A, interest("/3").nonce(8))), one(A, "Nack Congestion /3"));
    node.wait(50);
    assert_eq!(
        texts(&node.interest(A, interest("/0").nonce(9).lifetime(100))),
        one(UP, "Interest /0")
    );
    assert_eq!(node.dropped(Drop::FaceShare), 2);
    // Satisfied and expired Interests, and removed faces, release their share.
    assert_eq!(texts(&node.data(UP, "/1")), one(A, "Data /1"));
    assert_eq!(node.interest(A, interest("/4").lifetime(20)).faces(), [UP]);
    assert_eq!(node.interest(A, interest("/5")).faces(), [A]);
    node.wait(1_000);
    for round in 0..10 {
        for number in 0..3 {
            assert_eq!(node.interest(A, interest(&format!("/{round}/{number}"))).faces(), [UP]);
        }
        assert_eq!(node.interest(A, interest(&format!("/{round}/more"))).faces(), [A]);
        node.forwarder.remove_face(A);
        node.forwarder.set_face(A, Face::NEIGHBOUR);
    }
    // A new face with the same number does not get the Data of the removed one.
    assert_eq!(texts(&node.data(UP, "/0/0")), []);
    // On a shared medium no Nack is sent.
    for number in 0..4 {
        let outgoing = node.interest(SHARED, interest(&format!("/shared/{number}")));
        assert_eq!(outgoing.faces(), if number < 3 { vec![UP] } else { vec![] });
    }
}

#[test]
fn an_interest_that_the_store_answers_needs_no_share() {
    let mut node = Node::with(Settings { pit_per_face: Some(1), ..Settings::default() });
    fetch(&mut node, "/kept", None);
    assert_eq!(node.interest(A, interest("/pending")).faces(), [UP]);
    assert_eq!(texts(&node.interest(A, interest("/kept"))), one(A, "Data /kept"));
}

#[test]
fn no_interest_is_pending_longer_than_ten_seconds() {
    let mut node = Node::with(Settings::default());
    node.interest(A, interest("/a").lifetime(3_600_000));
    node.wait(9_999);
    assert_eq!(node.forwarder.pending(), 1);
    node.wait(1);
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn records_of_removed_faces_are_freed() {
    let mut node = Node::with(Settings { pit_capacity: 4, ..Settings::default() });
    for number in 0..1_000 {
        let face = FaceId(100 + number % 50);
        node.forwarder.set_face(face, Face::NEIGHBOUR);
        node.interest(face, interest("/same").nonce(number));
        assert!(!node.forwarder.remove_face(face), "it has no routes");
    }
    assert_eq!((node.dropped(Drop::RecordsFull), node.forwarder.pending()), (0, 1));
    assert_eq!(node.data(UP, "/same"), []);
}

#[test]
fn nonces_that_are_evicted_early_are_counted() {
    let mut node = Node::alone(Settings { dead_nonces: 16, ..Settings::default() });
    for number in 0..100 {
        node.interest(A, interest(&format!("/{number}")).lifetime(1));
        node.wait(1);
    }
    let evicted = node.counters().nonces_evicted;
    assert!((84..100).contains(&evicted), "{evicted}");
}

#[test]
fn the_use_of_tables_is_counted_by_face() {
    let mut node = Node::new();
    let usage = |node: &Node, face| {
        let FaceUse { exchanges, cs_hits, pending } = node.forwarder.face_use(face);
        [exchanges, cs_hits, pending]
    };
    // Two Interests of one face and one of another: one Data, and three exchanges.
    node.interest(A, interest("/a").nonce(1));
    node.interest(A, interest("/a").prefix().nonce(2));
    node.interest(B, interest("/a").nonce(3));
    assert_eq!([A, B, UP].map(|face| usage(&node, face)), [[0, 0, 2], [0, 0, 1], [0; 3]]);
    assert_eq!(node.data(UP, "/a").faces().len(), 2);
    assert_eq!([A, B, UP].map(|face| usage(&node, face)), [[2, 0, 0], [1, 0, 0], [0; 3]]);
    assert_eq!((node.counters().satisfied, node.counters().exchanges), (2, 3));
    node.interest(B, interest("/a").nonce(4));
    assert_eq!(usage(&node, B), [1, 1, 0]);
    // An expired Interest is not an exchange.
    node.interest(A, interest("/late").lifetime(10));
    node.wait(10);
    node.data(UP, "/late");
    assert_eq!(usage(&node, A), [2, 0, 0]);
    // A new face with the same number begins at 0.
    node.forwarder.remove_face(B);
    node.forwarder.set_face(B, Face::NEIGHBOUR);
    assert_eq!([usage(&node, B), usage(&node, FaceId(60_000))], [[0; 3]; 2]);
}
