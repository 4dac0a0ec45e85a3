//! Rules about what is kept: content store, bounds.

use ringtap_ndn::forwarder::{Drop, Face, FaceId, Settings};
use ringtap_ndn::packets::Headers;

use crate::support::{A, B, Faces as _, Node, SHARED, UP, ask, data, data_with, one, texts, token};

/// Puts a Data into the content store: asked for and answered.
fn fetch(node: &mut Node, text: &str, freshness_ms: Option<u64>) {
    node.ask(A, ask(text).nonce(99).lifetime(1));
    node.take(UP, Headers::default(), &data_with(text, freshness_ms, b"content"));
}

#[test]
fn what_was_passed_on_answers_the_next_with_his_token() {
    let mut node = Node::new();
    fetch(&mut node, "/a", None);
    let left = node.take(B, token(b"of B"), &ask("/a").wire());
    assert_eq!((texts(&left), left[0].headers.token), (one(B, "Data /a"), token(b"of B").token));
    assert_eq!((node.forwarder.pending(), node.counters().cs_hits), (0, 1));
}

#[test]
fn what_must_not_be_cached_is_not() {
    let mut node = Node::new();
    node.ask(A, ask("/a"));
    let left = node.take(UP, Headers { no_cache: true, ..Headers::default() }, &data("/a"));
    assert_eq!((left.faces(), node.forwarder.kept()), (vec![A], 0));
}

#[test]
fn freshness_is_for_so_long_and_0_is_not_at_all() {
    let mut node = Node::new();
    fetch(&mut node, "/never", None);
    fetch(&mut node, "/zero", Some(0));
    fetch(&mut node, "/some", Some(100));
    let asks = |node: &mut Node, text: &str| {
        node.ask(B, ask(text).fresh().nonce(node.now_ms as u32))[0].face
    };
    assert_eq!(["/never", "/zero", "/some"].map(|text| asks(&mut node, text)), [UP, UP, B]);
    node.wait(99);
    assert_eq!(asks(&mut node, "/some"), B);
    node.wait(1);
    assert_eq!(asks(&mut node, "/some"), UP);
    assert_eq!(
        texts(&node.ask(B, ask("/some"))),
        one(B, "Data /some"),
        "stale will do for who does not mind"
    );
}

#[test]
fn the_same_data_again_is_fresh_again() {
    let mut node = Node::new();
    fetch(&mut node, "/a", Some(100));
    node.wait(200);
    node.ask(A, ask("/a").fresh().nonce(3));
    node.take(UP, Headers::default(), &data_with("/a", Some(100), b"content"));
    assert_eq!(texts(&node.ask(B, ask("/a").fresh().nonce(4))), one(B, "Data /a"));
    assert_eq!(node.forwarder.kept(), 1);
}

#[test]
fn a_prefix_is_answered_only_for_who_allows_it() {
    let mut node = Node::new();
    fetch(&mut node, "/a/b/c", None);
    assert_eq!(texts(&node.ask(B, ask("/a").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(texts(&node.ask(B, ask("/a/b").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(texts(&node.ask(B, ask("/a/b/c").prefix())), one(B, "Data /a/b/c"));
    assert_eq!(node.ask(B, ask("/a"))[0].face, UP);
    assert_eq!(node.ask(B, ask("/a/x").prefix())[0].face, UP);
    assert_eq!(node.ask(B, ask("/a/b/c/d").prefix())[0].face, UP);
}

#[test]
fn a_fresh_one_is_looked_for_among_those_below_a_prefix() {
    let mut node = Node::new();
    fetch(&mut node, "/a/1", Some(1_000));
    fetch(&mut node, "/a/2", None);
    fetch(&mut node, "/a/3/x", None);
    assert_eq!(texts(&node.ask(B, ask("/a").prefix().fresh())), one(B, "Data /a/1"));
    assert_eq!(texts(&node.ask(B, ask("/a").prefix())), one(B, "Data /a/3/x"), "the newest");
}

#[test]
fn a_second_who_asks_does_not_look_into_the_store() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(1));
    node.ask(B, ask("/a").nonce(2));
    assert_eq!(node.counters().cs_misses, 1);
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut node = Node::with(Settings { cs_capacity: 3, ..Settings::default() });
    for text in ["/1", "/2", "/3"] {
        fetch(&mut node, text, None);
    }
    node.ask(B, ask("/1"));
    fetch(&mut node, "/4", None);
    assert_eq!((node.forwarder.kept(), node.counters().cs_evicted), (3, 1));
    let kept = ["/1", "/2", "/3", "/4"]
        .map(|text| node.ask(B, ask(text).nonce(5).lifetime(1))[0].face == B);
    assert_eq!(kept, [true, false, true, true]);
}

#[test]
fn the_store_is_bounded_in_bytes_and_leaves_nothing_behind() {
    let mut node =
        Node::with(Settings { cs_capacity: 50, cs_bytes: 20_000, ..Settings::default() });
    for number in 0..5_000u32 {
        let text = format!("/{}/{number}/x/y/z", number % 7);
        node.ask(A, ask(&text).nonce(number).lifetime(1));
        let size = (number * 37 % 3_000) as usize;
        node.take(UP, Headers::default(), &data_with(&text, None, &vec![1; size]));
        assert!(node.forwarder.kept() <= 50);
        let left = node.ask(B, ask(&text).nonce(number));
        assert_eq!(texts(&left), one(B, &format!("Data {text}")), "the newest is always there");
    }
    assert!(node.counters().cs_evicted > 4_900);
    // A Data that is larger than the whole store is passed on, and pushes nobody out for nothing in vain.
    let mut small = Node::with(Settings { cs_capacity: 5, cs_bytes: 1_000, ..Settings::default() });
    small.ask(A, ask("/big"));
    assert_eq!(small.take(UP, Headers::default(), &data_with("/big", None, &[1; 4_000])).len(), 1);
    assert_eq!(small.forwarder.kept(), 0);
}

#[test]
fn no_store_is_a_store() {
    let mut node = Node::with(Settings { cs_capacity: 0, ..Settings::default() });
    fetch(&mut node, "/a", None);
    assert_eq!((node.forwarder.kept(), node.ask(B, ask("/a"))[0].face), (0, UP));
}

#[test]
fn a_full_table_takes_no_more_and_says_so() {
    let mut node = Node::with(Settings { pit_capacity: 10, ..Settings::default() });
    for number in 0..30 {
        node.ask(A, ask(&format!("/{number}")).lifetime(100));
    }
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::PitFull)), (10, 20));
    // As many as there are records for: what is pending can be asked by others, too.
    for face in [B, crate::support::C, crate::support::APP] {
        (0..10).for_each(|number| {
            drop(node.ask(face, ask(&format!("/{number}")).nonce(face.0).lifetime(100)))
        });
    }
    assert_eq!(node.dropped(Drop::RecordsFull), 20);
    node.wait(100);
    assert_eq!(node.forwarder.pending(), 0);
    for number in 0..10 {
        assert_eq!(
            node.ask(A, ask(&format!("/again/{number}"))).len(),
            1,
            "all room is free again"
        );
    }
}

#[test]
fn a_face_has_no_more_pending_than_its_share() {
    let mut node = Node::with(Settings { pit_per_face: Some(3), ..Settings::default() });
    for number in 0..3 {
        assert_eq!(node.ask(A, ask(&format!("/{number}")).lifetime(100)).faces(), [UP]);
    }
    let refused = node.take(A, token(b"mine"), &ask("/3").nonce(7).wire());
    assert_eq!(texts(&refused), one(A, "Nack Congestion /3"));
    assert_eq!(
        (refused[0].interest().nonce, refused[0].headers.token),
        (Some(7), token(b"mine").token)
    );
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::FaceShare)), (3, 1));
    // What another face asked for counts, too; what this face asks again does not.
    assert_eq!(node.ask(B, ask("/3")).faces(), [UP]);
    assert_eq!(texts(&node.ask(A, ask("/3").nonce(8))), one(A, "Nack Congestion /3"));
    node.wait(50);
    assert_eq!(texts(&node.ask(A, ask("/0").nonce(9).lifetime(100))), one(UP, "Interest /0"));
    assert_eq!(node.dropped(Drop::FaceShare), 2);
    // Answered, expired, and removed faces give their share back.
    assert_eq!(texts(&node.data(UP, "/1")), one(A, "Data /1"));
    assert_eq!(node.ask(A, ask("/4").lifetime(20)).faces(), [UP]);
    assert_eq!(node.ask(A, ask("/5")).faces(), [A]);
    node.wait(1_000);
    for round in 0..10 {
        for number in 0..3 {
            assert_eq!(node.ask(A, ask(&format!("/{round}/{number}"))).faces(), [UP]);
        }
        assert_eq!(node.ask(A, ask(&format!("/{round}/more"))).faces(), [A]);
        node.forwarder.remove_face(A);
        node.forwarder.set_face(A, Face::NEIGHBOUR);
    }
    // The new face of that number does not get what the old one asked for.
    assert_eq!(texts(&node.data(UP, "/0/0")), []);
    // Where several receive what is sent, nothing is sent back.
    for number in 0..4 {
        let left = node.ask(SHARED, ask(&format!("/shared/{number}")));
        assert_eq!(left.faces(), if number < 3 { vec![UP] } else { vec![] });
    }
}

#[test]
fn answers_from_the_store_need_no_share() {
    let mut node = Node::with(Settings { pit_per_face: Some(1), ..Settings::default() });
    fetch(&mut node, "/kept", None);
    assert_eq!(node.ask(A, ask("/pending")).faces(), [UP]);
    assert_eq!(texts(&node.ask(A, ask("/kept"))), one(A, "Data /kept"));
}

#[test]
fn no_interest_is_pending_for_longer_than_ten_seconds() {
    let mut node = Node::with(Settings::default());
    node.ask(A, ask("/a").lifetime(3_600_000));
    node.wait(9_999);
    assert_eq!(node.forwarder.pending(), 1);
    node.wait(1);
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn records_of_faces_that_are_gone_make_room() {
    let mut node = Node::with(Settings { pit_capacity: 4, ..Settings::default() });
    for number in 0..1_000 {
        let face = FaceId(100 + number % 50);
        node.forwarder.set_face(face, Face::NEIGHBOUR);
        node.ask(face, ask("/same").nonce(number));
        assert!(!node.forwarder.remove_face(face), "it has no routes");
    }
    assert_eq!((node.dropped(Drop::RecordsFull), node.forwarder.pending()), (0, 1));
    assert_eq!(node.data(UP, "/same"), []);
}

#[test]
fn nonces_that_are_forgotten_early_are_counted() {
    let mut node = Node::with(Settings { dead_nonces: 16, ..Settings::default() });
    for number in 0..100 {
        node.ask(A, ask(&format!("/{number}")).lifetime(1));
        node.wait(1);
    }
    let evicted = node.counters().nonces_evicted;
    assert!((84..100).contains(&evicted), "{evicted}");
}
