//! Rules about Interests.

use ringtap_ndn::forwarder::{Drop, FaceId, Settings};
use ringtap_ndn::packets::{Headers, NackReason};

use crate::support::{
    A, APP, APP2, B, C, MS, Node, RADIO, SHARED, UP, UP2, data_with, interest, name, one, texts,
    token,
};

#[test]
fn an_interest_goes_to_the_next_hop_with_a_new_token() {
    let mut node = Node::new();
    let outgoing = node.take(A, token(b"theirs"), &interest("/a").wire());
    assert_eq!(texts(&outgoing), one(UP, "Interest /a"));
    assert_ne!(outgoing[0].headers.token, token(b"theirs").token);
    assert!(!outgoing[0].headers.token.as_bytes().is_empty());
    assert_eq!(node.forwarder.pending(), 1);
}

#[test]
fn hop_limit_0_is_dropped() {
    let mut node = Node::new();
    assert!(node.interest(A, interest("/a").hops(0)).is_empty());
    assert_eq!((node.dropped(Drop::HopLimit), node.forwarder.pending()), (1, 0));
}

#[test]
fn the_hop_limit_is_decremented() {
    let outgoing = Node::new().interest(A, interest("/a").hops(7));
    assert_eq!(outgoing[0].interest().hop_limit, Some(6));
    assert_eq!(Node::new().interest(A, interest("/a"))[0].interest().hop_limit, None);
}

#[test]
fn hop_limit_1_reaches_local_faces_only() {
    let mut node = Node::new();
    assert!(node.interest(A, interest("/a").hops(1)).is_empty());
    assert_eq!(node.dropped(Drop::HopLimit), 1);
    node.route("/app", APP, 1);
    let outgoing = node.interest(A, interest("/app").hops(1));
    assert_eq!(
        (texts(&outgoing), outgoing[0].interest().hop_limit),
        (one(APP, "Interest /app"), Some(0))
    );
}

#[test]
fn localhost_interests_are_for_local_faces_only() {
    let mut node = Node::new();
    node.route("/localhost", APP2, 1);
    assert!(node.interest(A, interest("/localhost/a")).is_empty());
    assert_eq!(node.dropped(Drop::Scope), 1);
    assert_eq!(
        texts(&node.interest(APP, interest("/localhost/a"))),
        one(APP2, "Interest /localhost/a")
    );
    node.route("/localhost/b", UP, 1);
    let outgoing = node.interest(APP, interest("/localhost/b"));
    assert_eq!(
        texts(&outgoing),
        one(APP, "Nack NoRoute /localhost/b"),
        "it must not leave the machine"
    );
}

#[test]
fn localhop_interests_go_one_hop_from_a_local_face() {
    let mut node = Node::new();
    assert_eq!(
        texts(&node.interest(APP, interest("/localhop/a"))),
        one(UP, "Interest /localhop/a")
    );
    assert_eq!(
        texts(&node.interest(A, interest("/localhop/b"))),
        one(A, "Nack NoRoute /localhop/b")
    );
    node.route("/localhop/c", APP, 1);
    assert_eq!(texts(&node.interest(A, interest("/localhop/c"))), one(APP, "Interest /localhop/c"));
}

#[test]
fn a_nonce_that_another_face_sent_is_a_loop() {
    let mut node = Node::new();
    node.multicast("/");
    node.interest(UP, interest("/a").nonce(5));
    let outgoing = node.take(A, token(b"t"), &interest("/a").nonce(5).wire());
    assert_eq!(texts(&outgoing), one(A, "Nack Duplicate /a"));
    assert_eq!(
        (outgoing[0].headers.token, outgoing[0].interest().nonce),
        (token(b"t").token, Some(5))
    );
    assert_eq!(node.dropped(Drop::Loop), 1);
}

#[test]
fn a_nonce_that_we_sent_is_a_loop() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(5));
    assert_eq!(texts(&node.interest(UP, interest("/a").nonce(5))), one(UP, "Nack Duplicate /a"));
}

#[test]
fn the_same_nonce_from_the_same_neighbour_is_a_retransmission() {
    let mut node = Node::new();
    // Nothing was sent: the only next hop is the sender.
    node.multicast("/");
    assert!(node.interest(UP, interest("/a").nonce(5)).is_empty());
    assert!(node.interest(UP, interest("/a").nonce(5)).is_empty());
    assert_eq!(node.dropped(Drop::Loop), 0);
    // On a shared medium it is a loop. No Nack is sent there.
    node.route("/b", SHARED, 1);
    node.multicast("/b");
    assert!(node.interest(SHARED, interest("/b").nonce(5)).is_empty());
    assert!(node.interest(SHARED, interest("/b").nonce(5)).is_empty());
    assert_eq!(node.dropped(Drop::Loop), 1);
}

#[test]
fn a_nonce_is_stored_for_six_seconds_after_its_entry_expires() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(5).lifetime(100));
    node.wait(100);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (0, 1));
    node.wait(5_999);
    assert_eq!(texts(&node.interest(B, interest("/a").nonce(5))), one(B, "Nack Duplicate /a"));
    node.wait(1);
    assert_eq!(texts(&node.interest(B, interest("/a").nonce(5))), one(UP, "Interest /a"));
}

#[test]
fn the_nonce_of_a_satisfied_interest_is_stored_only_if_it_could_loop() {
    let mut node = Node::new();
    for (text, fresh, freshness, known) in
        [("/a", false, None, false), ("/b", true, None, true), ("/c", true, Some(6_000), false)]
    {
        let request = interest(text).nonce(5);
        node.interest(A, if fresh { request.fresh() } else { request });
        node.take(
            UP,
            Headers { no_cache: true, ..Headers::default() },
            &data_with(text, freshness, b""),
        );
        let expected = if known { (B, "Nack Duplicate") } else { (UP, "Interest") };
        let outgoing = texts(&node.interest(B, interest(text).nonce(5)));
        assert_eq!((outgoing[0].0, outgoing[0].1.rsplit_once(' ').unwrap().0), expected, "{text}");
    }
}

#[test]
fn a_missing_nonce_is_added() {
    let mut node = Node::new();
    let mut request = interest("/a").lifetime(300).hops(9);
    request.nonce = None;
    let outgoing = node.interest(A, request);
    let sent = outgoing[0].interest();
    assert!(sent.nonce.is_some());
    assert_eq!((sent.lifetime_ms, sent.hop_limit, sent.name), (300, Some(8), name("/a").as_name()));
}

#[test]
fn interests_for_one_name_are_sent_once() {
    let mut node = Node::new();
    assert_eq!(node.interest(A, interest("/a").nonce(1)).len(), 1);
    assert!(node.interest(B, interest("/a").nonce(2)).is_empty());
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::Suppressed)), (1, 1));
}

#[test]
fn interests_with_other_selectors_or_hints_have_separate_entries() {
    let mut node = Node::new();
    let requests = [
        interest("/a"),
        interest("/a").prefix(),
        interest("/a").fresh(),
        interest("/a").prefix().fresh(),
        interest("/a").hint("/h"),
    ];
    for (nonce, interest) in (1..).zip(requests) {
        assert_eq!(node.interest(A, interest.nonce(nonce)).len(), 1, "{nonce}");
    }
    assert_eq!(node.forwarder.pending(), 5);
}

#[test]
fn a_retransmission_is_suppressed_for_10_ms_then_twice_as_long() {
    let mut node = Node::new();
    assert_eq!(node.interest(A, interest("/a").nonce(1)).len(), 1);
    for (nonce, wait, sent) in [(2, 9, 0), (3, 1, 1), (4, 19, 0), (5, 1, 1), (6, 39, 0), (7, 1, 1)]
    {
        node.wait(wait);
        assert_eq!(node.interest(A, interest("/a").nonce(nonce)).len(), sent, "{nonce}");
    }
    // 80, 160, 250 and no more.
    for (nonce, wait) in [(8, 80), (9, 160), (10, 250), (11, 250)] {
        node.wait(wait - 1);
        assert!(node.interest(A, interest("/a").nonce(100 + nonce)).is_empty(), "{nonce}");
        node.wait(1);
        assert_eq!(node.interest(A, interest("/a").nonce(nonce)).len(), 1, "{nonce}");
    }
}

#[test]
fn best_route_uses_the_cheapest_then_an_unused_then_the_least_recently_used_hop() {
    let mut node = Node::new();
    node.route("/a", UP2, 5);
    node.route("/a", C, 7);
    let faces: Vec<_> = (1..=5)
        .map(|nonce| {
            let outgoing = node.interest(A, interest("/a").nonce(nonce));
            node.wait(260);
            outgoing[0].face
        })
        .collect();
    assert_eq!(faces, [UP2, C, UP2, C, UP2]);
}

#[test]
fn an_interest_is_not_sent_to_its_sender_except_on_ad_hoc_links() {
    let mut node = Node::new();
    assert_eq!(texts(&node.interest(UP, interest("/a"))), one(UP, "Nack NoRoute /a"));
    assert_eq!((node.forwarder.pending(), node.dropped(Drop::NoRoute)), (0, 1));
    node.route("/r", RADIO, 1);
    assert_eq!(texts(&node.interest(RADIO, interest("/r"))), one(RADIO, "Interest /r"));
    node.route("/s", SHARED, 1);
    assert!(node.interest(SHARED, interest("/s")).is_empty(), "no Nack on a shared medium");
}

#[test]
fn the_longest_prefix_of_whole_components_applies() {
    let mut node = Node::new();
    node.route("/a/b", UP2, 1);
    for (text, face) in [("/a/b/c", UP2), ("/a/b", UP2), ("/a/bc", UP), ("/a", UP), ("/x", UP)] {
        assert_eq!(node.interest(A, interest(text))[0].face, face, "{text}");
    }
    assert!(node.forwarder.remove_route(&name("/a/b").as_name(), UP2));
    assert!(!node.forwarder.remove_route(&name("/a/b").as_name(), UP2));
    assert_eq!(node.interest(A, interest("/a/b/d"))[0].face, UP);
}

#[test]
fn multicast_goes_to_all_other_next_hops() {
    let mut node = Node::new();
    node.route("/m", A, 1);
    node.route("/m", B, 2);
    node.route("/m", C, 3);
    node.multicast("/m");
    let outgoing = node.interest(A, interest("/m/1"));
    assert_eq!(outgoing.iter().map(|outgoing| outgoing.face).collect::<Vec<_>>(), [B, C]);
    assert_eq!(outgoing[0].wire, outgoing[1].wire);
    node.wait(5);
    // B is the sender. A has not been used yet. C was used within the suppression interval.
    assert_eq!(node.interest(B, interest("/m/1").nonce(2))[0].face, A);
}

#[test]
fn a_new_next_hop_of_multicast_gets_pending_interests() {
    let mut node = Node::new();
    node.multicast("/m");
    node.route("/m", B, 1);
    node.interest(A, interest("/m/1"));
    node.interest(A, interest("/x"));
    assert_eq!(texts(&node.route("/m", C, 2)), one(C, "Interest /m/1"));
    assert!(node.route("/m", C, 3).is_empty(), "only when it is new");
    assert!(node.route("/m", A, 3).is_empty(), "not to the downstream face");
    assert_eq!(texts(&node.data(C, "/m/1")), one(A, "Data /m/1"));
}

#[test]
fn the_first_usable_name_of_a_hint_selects_the_next_hops() {
    let mut node = Node::with(Settings { regions: vec![name("/here/x")], ..Settings::default() });
    node.forwarder.remove_route(&name("/").as_name(), UP);
    node.route("/far", UP2, 1);
    node.route("/a", C, 1);
    let outgoing = node.interest(A, interest("/a").hint("/nowhere").hint("/far/away"));
    assert_eq!(
        (texts(&outgoing), outgoing[0].interest().delegations().count()),
        (one(UP2, "Interest /a"), 2)
    );
    assert_eq!(
        texts(&node.interest(A, interest("/a").nonce(2).hint("/nowhere"))),
        one(A, "Nack NoRoute /a")
    );
    // In the producer's region the hint is removed.
    let outgoing = node.interest(A, interest("/a").nonce(3).hint("/here"));
    assert_eq!((texts(&outgoing), outgoing[0].interest().hint), (one(C, "Interest /a"), &[][..]));
    assert_eq!(node.forwarder.pending(), 2);
}

#[test]
fn a_local_application_may_choose_the_next_hop() {
    let mut node = Node::new();
    let to = |face: FaceId| Headers { next_hop_face: Some(face.0.into()), ..Headers::default() };
    assert_eq!(texts(&node.take(APP, to(C), &interest("/a").wire())), one(C, "Interest /a"));
    assert_eq!(
        texts(&node.take(A, to(C), &interest("/b").wire())),
        one(UP, "Interest /b"),
        "a neighbour may not choose"
    );
    assert!(node.take(APP, to(FaceId(u32::MAX)), &interest("/c").wire()).is_empty());
}

#[test]
fn an_entry_expires_with_its_last_in_record() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(1).lifetime(100));
    node.interest(B, interest("/a").nonce(2).lifetime(300));
    node.wait(299);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (1, 0));
    node.wait(1);
    assert_eq!((node.forwarder.pending(), node.counters().unsatisfied), (0, 1));
}

#[test]
fn a_retransmission_extends_the_lifetime() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(1).lifetime(100));
    node.wait(90);
    node.interest(A, interest("/a").nonce(2).lifetime(100));
    node.wait(90);
    assert_eq!(texts(&node.data(UP, "/a")), one(A, "Data /a"));
}

#[test]
fn the_default_lifetime_is_4_seconds_and_every_lifetime_is_bounded() {
    let mut node = Node::new();
    node.interest(A, interest("/a"));
    node.interest(A, interest("/b").lifetime(u64::MAX));
    node.wait(3_999);
    assert_eq!(node.forwarder.pending(), 2);
    node.wait(1);
    assert_eq!(node.forwarder.pending(), 1);
    node.wait(3_600_000);
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn an_expired_entry_is_not_reused() {
    let mut node = Node::new();
    let mut at = |ns, nonce| {
        let wire = interest("/a").nonce(nonce).lifetime(1).wire();
        node.forwarder.take(1_000_000 * MS + ns, A, &Headers::default(), &wire).len()
    };
    // The second Interest joins the entry and is suppressed. The third comes after the expiry.
    assert_eq!((at(MS / 2, 1), at(MS, 2), at(2 * MS + 1, 3)), (1, 0, 1));
}

#[test]
fn a_no_route_nack_carries_the_token_and_the_interest() {
    let mut node = Node::new();
    node.forwarder.remove_route(&name("/").as_name(), UP);
    let wire = interest("/a").nonce(77).hops(5).wire();
    let outgoing = node.take(A, token(b"t"), &wire);
    assert_eq!(texts(&outgoing), one(A, "Nack NoRoute /a"));
    assert_eq!(
        (outgoing[0].headers.nack, outgoing[0].headers.token),
        (Some(NackReason::NoRoute), token(b"t").token)
    );
    assert_eq!(outgoing[0].wire, wire, "the Interest is unchanged");
}

#[test]
fn malformed_packets_and_unknown_faces_are_counted() {
    let mut node = Node::new();
    node.take(A, Headers::default(), &[5, 0]);
    node.take(FaceId(60_000), Headers::default(), &interest("/a").wire());
    let long = "/a".repeat(65);
    node.interest(A, interest(&long));
    let drops =
        [Drop::Malformed, Drop::NoFace, Drop::NameTooLong].map(|reason| node.dropped(reason));
    assert_eq!(drops, [1, 1, 1]);
}

#[test]
fn a_removed_face_loses_its_routes_and_pending_interests() {
    let mut node = Node::new();
    node.route("/a", UP2, 1);
    node.interest(A, interest("/a"));
    node.interest(B, interest("/a").nonce(2));
    node.forwarder.remove_face(A);
    node.forwarder.remove_face(UP2);
    assert_eq!(texts(&node.data(UP, "/a")), one(B, "Data /a"));
    assert_eq!(node.interest(B, interest("/a/b"))[0].face, UP);
}

#[test]
fn packets_to_local_programs_carry_the_receiving_face() {
    let mut node = Node::new();
    node.route("/app", APP, 10);
    let to_app = node.interest(A, interest("/app/1"));
    assert_eq!((to_app[0].face, to_app[0].headers.incoming_face), (APP, Some(A.0.into())));
    let upstream = node.interest(APP, interest("/1"));
    assert_eq!((upstream[0].face, upstream[0].headers.incoming_face), (UP, None));
    let back = node.data(UP, "/1");
    assert_eq!((back[0].face, back[0].headers.incoming_face), (APP, Some(UP.0.into())));
    let back = node.data(APP, "/app/1");
    assert_eq!((back[0].face, back[0].headers.incoming_face), (A, None));
}
