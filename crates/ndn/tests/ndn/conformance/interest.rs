//! Rules about Interests.

use ringtap_ndn::forwarder::{Drop, FaceId, Settings};
use ringtap_ndn::packets::{Headers, NackReason};

use crate::support::{
    A, APP, APP2, B, C, MS, Node, RADIO, SHARED, UP, UP2, ask, data_with, name, one, texts, token,
};

#[test]
fn an_interest_goes_to_the_next_hop_with_a_token_of_ours() {
    let mut node = Node::new();
    let left = node.take(A, token(b"theirs"), &ask("/a").wire());
    assert_eq!(texts(&left), one(UP, "Interest /a"));
    assert_ne!(left[0].headers.token, token(b"theirs").token);
    assert!(!left[0].headers.token.as_bytes().is_empty());
    assert_eq!(node.forwarder.pending(), 1);
}

#[test]
fn hop_limit_0_is_dropped() {
    let mut node = Node::new();
    assert!(node.ask(A, ask("/a").hops(0)).is_empty());
    assert_eq!((node.dropped(Drop::HopLimit), node.forwarder.pending()), (1, 0));
}

#[test]
fn the_hop_limit_falls_by_one() {
    let left = Node::new().ask(A, ask("/a").hops(7));
    assert_eq!(left[0].interest().hop_limit, Some(6));
    assert_eq!(Node::new().ask(A, ask("/a"))[0].interest().hop_limit, None);
}

#[test]
fn hop_limit_1_reaches_local_faces_only() {
    let mut node = Node::new();
    assert!(node.ask(A, ask("/a").hops(1)).is_empty());
    assert_eq!(node.dropped(Drop::HopLimit), 1);
    node.route("/app", APP, 1);
    let left = node.ask(A, ask("/app").hops(1));
    assert_eq!((texts(&left), left[0].interest().hop_limit), (one(APP, "Interest /app"), Some(0)));
}

#[test]
fn localhost_is_for_local_faces() {
    let mut node = Node::new();
    node.route("/localhost", APP2, 1);
    assert!(node.ask(A, ask("/localhost/a")).is_empty());
    assert_eq!(node.dropped(Drop::Scope), 1);
    assert_eq!(texts(&node.ask(APP, ask("/localhost/a"))), one(APP2, "Interest /localhost/a"));
    node.route("/localhost/b", UP, 1);
    let left = node.ask(APP, ask("/localhost/b"));
    assert_eq!(
        texts(&left),
        one(APP, "Nack NoRoute /localhost/b"),
        "it must not leave the machine"
    );
}

#[test]
fn localhop_takes_one_hop_from_a_local_face() {
    let mut node = Node::new();
    assert_eq!(texts(&node.ask(APP, ask("/localhop/a"))), one(UP, "Interest /localhop/a"));
    assert_eq!(texts(&node.ask(A, ask("/localhop/b"))), one(A, "Nack NoRoute /localhop/b"));
    node.route("/localhop/c", APP, 1);
    assert_eq!(texts(&node.ask(A, ask("/localhop/c"))), one(APP, "Interest /localhop/c"));
}

#[test]
fn a_nonce_that_another_face_sent_is_a_loop() {
    let mut node = Node::new();
    node.multicast("/");
    node.ask(UP, ask("/a").nonce(5));
    let left = node.take(A, token(b"t"), &ask("/a").nonce(5).wire());
    assert_eq!(texts(&left), one(A, "Nack Duplicate /a"));
    assert_eq!((left[0].headers.token, left[0].interest().nonce), (token(b"t").token, Some(5)));
    assert_eq!(node.dropped(Drop::Loop), 1);
}

#[test]
fn a_nonce_that_we_sent_is_a_loop() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(5));
    assert_eq!(texts(&node.ask(UP, ask("/a").nonce(5))), one(UP, "Nack Duplicate /a"));
}

#[test]
fn the_same_nonce_from_the_same_neighbour_is_no_loop() {
    let mut node = Node::new();
    // Nothing was sent: there is no other way than back.
    node.multicast("/");
    assert!(node.ask(UP, ask("/a").nonce(5)).is_empty());
    assert!(node.ask(UP, ask("/a").nonce(5)).is_empty());
    assert_eq!(node.dropped(Drop::Loop), 0);
    // From a shared medium it is one, but nobody in particular can be told.
    node.route("/b", SHARED, 1);
    node.multicast("/b");
    assert!(node.ask(SHARED, ask("/b").nonce(5)).is_empty());
    assert!(node.ask(SHARED, ask("/b").nonce(5)).is_empty());
    assert_eq!(node.dropped(Drop::Loop), 1);
}

#[test]
fn a_nonce_is_known_for_six_seconds_after_its_interest_is_gone() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(5).lifetime(100));
    node.wait(100);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (0, 1));
    node.wait(5_999);
    assert_eq!(texts(&node.ask(B, ask("/a").nonce(5))), one(B, "Nack Duplicate /a"));
    node.wait(1);
    assert_eq!(texts(&node.ask(B, ask("/a").nonce(5))), one(UP, "Interest /a"));
}

#[test]
fn a_nonce_of_an_answered_interest_is_remembered_only_if_it_could_go_round() {
    let mut node = Node::new();
    for (text, fresh, freshness, known) in
        [("/a", false, None, false), ("/b", true, None, true), ("/c", true, Some(6_000), false)]
    {
        let asked = ask(text).nonce(5);
        node.ask(A, if fresh { asked.fresh() } else { asked });
        node.take(
            UP,
            Headers { no_cache: true, ..Headers::default() },
            &data_with(text, freshness, b""),
        );
        let expected = if known { (B, "Nack Duplicate") } else { (UP, "Interest") };
        let left = texts(&node.ask(B, ask(text).nonce(5)));
        assert_eq!((left[0].0, left[0].1.rsplit_once(' ').unwrap().0), expected, "{text}");
    }
}

#[test]
fn a_missing_nonce_is_added() {
    let mut node = Node::new();
    let mut asked = ask("/a").lifetime(300).hops(9);
    asked.nonce = None;
    let left = node.ask(A, asked);
    let sent = left[0].interest();
    assert!(sent.nonce.is_some());
    assert_eq!((sent.lifetime_ms, sent.hop_limit, sent.name), (300, Some(8), name("/a").as_name()));
}

#[test]
fn interests_for_the_same_are_sent_once() {
    let mut node = Node::new();
    assert_eq!(node.ask(A, ask("/a").nonce(1)).len(), 1);
    assert!(node.ask(B, ask("/a").nonce(2)).is_empty());
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::Suppressed)), (1, 1));
}

#[test]
fn selectors_and_hints_make_other_entries() {
    let mut node = Node::new();
    let asked = [
        ask("/a"),
        ask("/a").prefix(),
        ask("/a").fresh(),
        ask("/a").prefix().fresh(),
        ask("/a").hint("/h"),
    ];
    for (nonce, ask) in (1..).zip(asked) {
        assert_eq!(node.ask(A, ask.nonce(nonce)).len(), 1, "{nonce}");
    }
    assert_eq!(node.forwarder.pending(), 5);
}

#[test]
fn a_repetition_is_held_back_for_10_ms_then_twice_as_long() {
    let mut node = Node::new();
    assert_eq!(node.ask(A, ask("/a").nonce(1)).len(), 1);
    for (nonce, wait, sent) in [(2, 9, 0), (3, 1, 1), (4, 19, 0), (5, 1, 1), (6, 39, 0), (7, 1, 1)]
    {
        node.wait(wait);
        assert_eq!(node.ask(A, ask("/a").nonce(nonce)).len(), sent, "{nonce}");
    }
    // 80, 160, 250 and no more.
    for (nonce, wait) in [(8, 80), (9, 160), (10, 250), (11, 250)] {
        node.wait(wait - 1);
        assert!(node.ask(A, ask("/a").nonce(100 + nonce)).is_empty(), "{nonce}");
        node.wait(1);
        assert_eq!(node.ask(A, ask("/a").nonce(nonce)).len(), 1, "{nonce}");
    }
}

#[test]
fn best_route_takes_the_cheapest_then_an_unused_one_then_the_one_used_earliest() {
    let mut node = Node::new();
    node.route("/a", UP2, 5);
    node.route("/a", C, 7);
    let faces: Vec<_> = (1..=5)
        .map(|nonce| {
            let left = node.ask(A, ask("/a").nonce(nonce));
            node.wait(260);
            left[0].face
        })
        .collect();
    assert_eq!(faces, [UP2, C, UP2, C, UP2]);
}

#[test]
fn an_interest_never_goes_back_but_on_a_radio() {
    let mut node = Node::new();
    assert_eq!(texts(&node.ask(UP, ask("/a"))), one(UP, "Nack NoRoute /a"));
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::NoRoute)), (0, 1));
    node.route("/r", RADIO, 1);
    assert_eq!(texts(&node.ask(RADIO, ask("/r"))), one(RADIO, "Interest /r"));
    node.route("/s", SHARED, 1);
    assert!(node.ask(SHARED, ask("/s")).is_empty(), "and who shares a medium gets no Nack");
}

#[test]
fn the_longest_prefix_counts_by_whole_components() {
    let mut node = Node::new();
    node.route("/a/b", UP2, 1);
    for (text, face) in [("/a/b/c", UP2), ("/a/b", UP2), ("/a/bc", UP), ("/a", UP), ("/x", UP)] {
        assert_eq!(node.ask(A, ask(text))[0].face, face, "{text}");
    }
    assert!(node.forwarder.remove_route(&name("/a/b").as_name(), UP2));
    assert!(!node.forwarder.remove_route(&name("/a/b").as_name(), UP2));
    assert_eq!(node.ask(A, ask("/a/b/d"))[0].face, UP);
}

#[test]
fn multicast_goes_everywhere_but_back() {
    let mut node = Node::new();
    node.route("/m", A, 1);
    node.route("/m", B, 2);
    node.route("/m", C, 3);
    node.multicast("/m");
    let left = node.ask(A, ask("/m/1"));
    assert_eq!(left.iter().map(|left| left.face).collect::<Vec<_>>(), [B, C]);
    assert_eq!(left[0].wire, left[1].wire);
    node.wait(5);
    // B asks, too: it may go to A, who was not asked yet; C was just asked.
    assert_eq!(node.ask(B, ask("/m/1").nonce(2))[0].face, A);
}

#[test]
fn a_new_next_hop_of_multicast_gets_what_is_pending() {
    let mut node = Node::new();
    node.multicast("/m");
    node.route("/m", B, 1);
    node.ask(A, ask("/m/1"));
    node.ask(A, ask("/x"));
    assert_eq!(texts(&node.route("/m", C, 2)), one(C, "Interest /m/1"));
    assert!(node.route("/m", C, 3).is_empty(), "only when it is new");
    assert!(node.route("/m", A, 3).is_empty(), "not to who asks");
    assert_eq!(texts(&node.data(C, "/m/1")), one(A, "Data /m/1"));
}

#[test]
fn a_hint_is_followed_to_its_first_usable_name() {
    let mut node = Node::with(Settings { regions: vec![name("/here/x")], ..Settings::default() });
    node.forwarder.remove_route(&name("/").as_name(), UP);
    node.route("/far", UP2, 1);
    node.route("/a", C, 1);
    let left = node.ask(A, ask("/a").hint("/nowhere").hint("/far/away"));
    assert_eq!(
        (texts(&left), left[0].interest().delegations().count()),
        (one(UP2, "Interest /a"), 2)
    );
    assert_eq!(texts(&node.ask(A, ask("/a").nonce(2).hint("/nowhere"))), one(A, "Nack NoRoute /a"));
    // In the producer's region the hint has done its work.
    let left = node.ask(A, ask("/a").nonce(3).hint("/here"));
    assert_eq!((texts(&left), left[0].interest().hint), (one(C, "Interest /a"), &[][..]));
    assert_eq!(node.forwarder.pending(), 2);
}

#[test]
fn a_local_application_may_choose_the_next_hop() {
    let mut node = Node::new();
    let to = |face: FaceId| Headers { next_hop_face: Some(face.0.into()), ..Headers::default() };
    assert_eq!(texts(&node.take(APP, to(C), &ask("/a").wire())), one(C, "Interest /a"));
    assert_eq!(
        texts(&node.take(A, to(C), &ask("/b").wire())),
        one(UP, "Interest /b"),
        "a neighbour may not"
    );
    assert!(node.take(APP, to(FaceId(u32::MAX)), &ask("/c").wire()).is_empty());
}

#[test]
fn an_interest_ends_when_the_last_who_asks_gives_up() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(1).lifetime(100));
    node.ask(B, ask("/a").nonce(2).lifetime(300));
    node.wait(299);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (1, 0));
    node.wait(1);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (0, 1));
}

#[test]
fn asking_again_extends_the_time() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(1).lifetime(100));
    node.wait(90);
    node.ask(A, ask("/a").nonce(2).lifetime(100));
    node.wait(90);
    assert_eq!(texts(&node.data(UP, "/a")), one(A, "Data /a"));
}

#[test]
fn a_lifetime_is_4_seconds_if_nobody_says_and_never_endless() {
    let mut node = Node::new();
    node.ask(A, ask("/a"));
    node.ask(A, ask("/b").lifetime(u64::MAX));
    node.wait(3_999);
    assert_eq!(node.forwarder.pending(), 2);
    node.wait(1);
    assert_eq!(node.forwarder.pending(), 1);
    node.wait(3_600_000);
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn an_interest_that_is_over_is_not_joined_even_before_the_wheel_turns() {
    let mut node = Node::new();
    let mut at = |ns, nonce| {
        let mut sent = 0;
        let mut out = |_, _: &Headers, _: &[u8]| sent += 1;
        let wire = ask("/a").nonce(nonce).lifetime(1).wire();
        node.forwarder.take(1_000_000 * MS + ns, A, &Headers::default(), &wire, &mut out);
        sent
    };
    // A millisecond later by half of the wheel's tick.
    assert_eq!((at(MS / 2, 1), at(MS, 2), at(2 * MS + 1, 3)), (1, 0, 1));
}

#[test]
fn nack_of_no_route_has_the_token_and_the_interest() {
    let mut node = Node::new();
    node.forwarder.remove_route(&name("/").as_name(), UP);
    let wire = ask("/a").nonce(77).hops(5).wire();
    let left = node.take(A, token(b"t"), &wire);
    assert_eq!(texts(&left), one(A, "Nack NoRoute /a"));
    assert_eq!(
        (left[0].headers.nack, left[0].headers.token),
        (Some(NackReason::NoRoute), token(b"t").token)
    );
    assert_eq!(left[0].wire, wire, "as it came");
}

#[test]
fn what_is_no_packet_and_who_is_no_face_is_counted() {
    let mut node = Node::new();
    node.take(A, Headers::default(), &[5, 0]);
    node.take(FaceId(60_000), Headers::default(), &ask("/a").wire());
    let long = "/a".repeat(65);
    node.ask(A, ask(&long));
    let drops =
        [Drop::Malformed, Drop::NoFace, Drop::NameTooLong].map(|reason| node.dropped(reason));
    assert_eq!(drops, [1, 1, 1]);
}

#[test]
fn a_face_that_goes_takes_its_routes_and_what_it_asked_along() {
    let mut node = Node::new();
    node.route("/a", UP2, 1);
    node.ask(A, ask("/a"));
    node.ask(B, ask("/a").nonce(2));
    node.forwarder.remove_face(A);
    node.forwarder.remove_face(UP2);
    assert_eq!(texts(&node.data(UP, "/a")), one(B, "Data /a"));
    assert_eq!(node.ask(B, ask("/a/b"))[0].face, UP);
}
