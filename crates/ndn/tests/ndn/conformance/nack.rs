//! Rules about Nacks.

use ringtap_ndn::forwarder::Drop;
use ringtap_ndn::packets::NackReason;

use crate::support::{A, B, Node, SHARED, UP, UP2, ask, one, texts, token};

#[test]
fn a_nack_goes_back_when_all_who_were_asked_refused() {
    let mut node = Node::new();
    let sent = node.take(A, token(b"of A"), &ask("/a").nonce(7).wire());
    let left = node.nack(UP, NackReason::Congestion, &sent[0]);
    assert_eq!(texts(&left), one(A, "Nack Congestion /a"));
    assert_eq!((left[0].headers.token, left[0].interest().nonce), (token(b"of A").token, Some(7)));
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn each_who_asks_gets_his_own_nonce_back() {
    let mut node = Node::new();
    let sent = node.ask(A, ask("/a").nonce(7));
    node.ask(B, ask("/a").nonce(8));
    let left = node.nack(UP, NackReason::NoRoute, &sent[0]);
    let nonces: Vec<_> = left.iter().map(|left| (left.face, left.interest().nonce)).collect();
    assert_eq!(nonces, [(A, Some(7)), (B, Some(8))]);
}

#[test]
fn the_least_severe_reason_is_told() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.ask(A, ask("/a"));
    assert!(node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty(), "the other may answer");
    assert_eq!(
        texts(&node.nack(UP2, NackReason::Congestion, &sent[1])),
        one(A, "Nack Congestion /a")
    );
}

#[test]
fn data_of_the_other_is_still_welcome() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.ask(A, ask("/a"));
    node.nack(UP, NackReason::NoRoute, &sent[0]);
    assert_eq!(texts(&node.data(UP2, "/a")), one(A, "Data /a"));
}

#[test]
fn a_nack_with_another_nonce_is_of_no_account() {
    let mut node = Node::new();
    let old = node.ask(A, ask("/a").nonce(1));
    node.wait(10);
    let new = node.ask(A, ask("/a").nonce(2));
    assert_eq!(new[0].face, UP);
    assert!(node.nack(UP, NackReason::NoRoute, &old[0]).is_empty());
    assert_eq!((node.dropped(Drop::StrayNack), node.forwarder.pending()), (1, 1));
    assert_eq!(texts(&node.nack(UP, NackReason::NoRoute, &new[0])), one(A, "Nack NoRoute /a"));
}

#[test]
fn a_nack_from_who_was_not_asked_is_of_no_account() {
    let mut node = Node::new();
    let sent = node.ask(A, ask("/a"));
    assert!(node.nack(UP2, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!((node.dropped(Drop::StrayNack), node.forwarder.pending()), (1, 1));
}

#[test]
fn a_nack_for_nothing_pending_is_of_no_account() {
    let mut node = Node::new();
    let sent = node.ask(A, ask("/a").lifetime(10));
    node.now_ms += 10;
    assert!(node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty());
    assert!(node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!(node.dropped(Drop::StrayNack), 2);
}

#[test]
fn a_nack_from_a_shared_medium_is_of_no_account() {
    let mut node = Node::new();
    node.route("/s", SHARED, 1);
    let sent = node.ask(A, ask("/s"));
    assert!(node.nack(SHARED, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!(node.dropped(Drop::StrayNack), 1);
}

#[test]
fn nobody_is_told_twice() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.ask(UP, ask("/a").nonce(1));
    assert_eq!(sent[0].face, UP2);
    node.ask(UP2, ask("/a").nonce(2));
    // UP2 refuses; UP, the only one left to answer, asks us: he is told and may try elsewhere.
    let left = node.nack(UP2, NackReason::NoRoute, &sent[0]);
    assert_eq!(left.iter().filter(|left| left.face == UP).count(), 1);
    assert!(node.nack(UP2, NackReason::NoRoute, &sent[0]).iter().all(|left| left.face != UP));
}

#[test]
fn after_a_nack_another_way_may_be_tried() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    let sent = node.ask(A, ask("/a").nonce(1));
    node.nack(UP, NackReason::NoRoute, &sent[0]);
    assert_eq!(
        node.ask(A, ask("/a").nonce(2))[0].face,
        UP,
        "the entry is gone, so is what it knew"
    );
}
