//! Rules about Nacks.

use ringtap_ndn::forwarder::Drop;
use ringtap_ndn::packets::NackReason;

use crate::support::{A, B, Node, SHARED, UP, UP2, interest, one, texts, token};

#[test]
fn a_nack_is_returned_when_all_upstream_faces_refused() {
    let mut node = Node::new();
    let sent = node.take(A, token(b"of A"), &interest("/a").nonce(7).wire());
    let outgoing = node.nack(UP, NackReason::Congestion, &sent[0]);
    assert_eq!(texts(&outgoing), one(A, "Nack Congestion /a"));
    assert_eq!(
        (outgoing[0].headers.token, outgoing[0].interest().nonce),
        (token(b"of A").token, Some(7))
    );
    assert_eq!(node.forwarder.pending(), 0);
}

#[test]
fn each_downstream_face_gets_its_own_nonce_back() {
    let mut node = Node::new();
    let sent = node.interest(A, interest("/a").nonce(7));
    node.interest(B, interest("/a").nonce(8));
    let outgoing = node.nack(UP, NackReason::NoRoute, &sent[0]);
    let nonces: Vec<_> =
        outgoing.iter().map(|outgoing| (outgoing.face, outgoing.interest().nonce)).collect();
    assert_eq!(nonces, [(A, Some(7)), (B, Some(8))]);
}

#[test]
fn the_least_severe_reason_is_sent() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.interest(A, interest("/a"));
    assert!(
        node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty(),
        "the other face may still answer"
    );
    assert_eq!(
        texts(&node.nack(UP2, NackReason::Congestion, &sent[1])),
        one(A, "Nack Congestion /a")
    );
}

#[test]
fn data_of_another_face_is_still_accepted() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.interest(A, interest("/a"));
    node.nack(UP, NackReason::NoRoute, &sent[0]);
    assert_eq!(texts(&node.data(UP2, "/a")), one(A, "Data /a"));
}

#[test]
fn a_nack_with_another_nonce_is_ignored() {
    let mut node = Node::new();
    let old = node.interest(A, interest("/a").nonce(1));
    node.wait(10);
    let new = node.interest(A, interest("/a").nonce(2));
    assert_eq!(new[0].face, UP);
    assert!(node.nack(UP, NackReason::NoRoute, &old[0]).is_empty());
    assert_eq!((node.dropped(Drop::StrayNack), node.forwarder.pending()), (1, 1));
    assert_eq!(texts(&node.nack(UP, NackReason::NoRoute, &new[0])), one(A, "Nack NoRoute /a"));
}

#[test]
fn a_nack_from_another_face_is_ignored() {
    let mut node = Node::new();
    let sent = node.interest(A, interest("/a"));
    assert!(node.nack(UP2, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!((node.dropped(Drop::StrayNack), node.forwarder.pending()), (1, 1));
}

#[test]
fn a_nack_without_an_entry_is_ignored() {
    let mut node = Node::new();
    let sent = node.interest(A, interest("/a").lifetime(10));
    node.now_ms += 10;
    assert!(node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty());
    assert!(node.nack(UP, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!(node.dropped(Drop::StrayNack), 2);
}

#[test]
fn a_nack_from_a_shared_medium_is_ignored() {
    let mut node = Node::new();
    node.route("/s", SHARED, 1);
    let sent = node.interest(A, interest("/s"));
    assert!(node.nack(SHARED, NackReason::NoRoute, &sent[0]).is_empty());
    assert_eq!(node.dropped(Drop::StrayNack), 1);
}

#[test]
fn each_downstream_face_gets_at_most_one_nack() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    node.multicast("/");
    let sent = node.interest(UP, interest("/a").nonce(1));
    assert_eq!(sent[0].face, UP2);
    node.interest(UP2, interest("/a").nonce(2));
    // UP2 refuses. UP is the only face that may still answer, and it is also downstream: it gets a
    // Nack and may try another route.
    let outgoing = node.nack(UP2, NackReason::NoRoute, &sent[0]);
    assert_eq!(outgoing.iter().filter(|outgoing| outgoing.face == UP).count(), 1);
    assert!(
        node.nack(UP2, NackReason::NoRoute, &sent[0]).iter().all(|outgoing| outgoing.face != UP)
    );
}

#[test]
fn after_a_nack_another_route_may_be_tried() {
    let mut node = Node::new();
    node.route("/", UP2, 11);
    let sent = node.interest(A, interest("/a").nonce(1));
    node.nack(UP, NackReason::NoRoute, &sent[0]);
    assert_eq!(
        node.interest(A, interest("/a").nonce(2))[0].face,
        UP,
        "the entry and its records are removed"
    );
}
