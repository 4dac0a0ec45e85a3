//! Rules about Data.

use ringtap_ndn::forwarder::{Drop, Settings, Unsolicited};
use ringtap_ndn::packets::{Data, Headers};

use crate::support::{
    A, APP, B, C, Faces as _, Node, RADIO, UP, UP2, data, data_with, interest, one, texts, token,
};

#[test]
fn data_returns_to_each_downstream_face_with_its_token() {
    let mut node = Node::new();
    node.take(A, token(b"of A"), &interest("/a").nonce(1).wire());
    node.take(B, token(b"of B"), &interest("/a").nonce(2).wire());
    let outgoing = node.data(UP, "/a");
    assert_eq!(outgoing.faces(), [A, B]);
    assert_eq!(
        [outgoing[0].headers.token, outgoing[1].headers.token],
        [token(b"of A").token, token(b"of B").token]
    );
    assert!(outgoing.iter().all(|outgoing| outgoing.wire == data("/a")), "byte by byte");
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (0, 1));
}

#[test]
fn an_interest_is_satisfied_by_one_data_only() {
    let mut node = Node::new();
    node.interest(A, interest("/a"));
    assert_eq!(node.data(UP, "/a").len(), 1);
    assert!(node.data(UP, "/a").is_empty());
    assert_eq!(node.dropped(Drop::Unsolicited), 1);
}

#[test]
fn unsolicited_data_is_neither_forwarded_nor_stored() {
    let mut node = Node::new();
    assert!(node.data(UP, "/a").is_empty());
    assert!(node.data(APP, "/a").is_empty());
    assert_eq!((node.forwarder.stored(), node.dropped(Drop::Unsolicited)), (0, 2));
    assert_eq!(
        texts(&node.interest(A, interest("/a"))),
        one(UP, "Interest /a"),
        "the cache is not poisoned"
    );
}

#[test]
fn unsolicited_data_of_local_faces_is_stored_if_configured() {
    let mut node =
        Node::with(Settings { unsolicited: Unsolicited::KeepLocal, ..Settings::default() });
    node.data(UP, "/a");
    node.data(APP, "/b");
    assert_eq!(node.forwarder.stored(), 1);
    assert_eq!(texts(&node.interest(A, interest("/b"))), one(A, "Data /b"));
}

#[test]
fn a_token_of_another_name_is_ignored() {
    let mut node = Node::new();
    let sent = node.interest(A, interest("/a"));
    let headers = Headers { token: sent[0].headers.token, ..Headers::default() };
    assert!(node.take(UP, headers, &data("/other")).is_empty());
    assert_eq!((node.forwarder.pending(), node.forwarder.stored()), (1, 0));
    assert_eq!((node.counters().tokens_wrong, node.dropped(Drop::Unsolicited)), (1, 1));
    assert_eq!(texts(&node.take(UP, headers, &data("/a"))), one(A, "Data /a"));
    assert_eq!(node.counters().tokens_right, 1);
}

#[test]
fn a_token_of_a_removed_entry_is_detected() {
    let mut node = Node::new();
    let old = node.interest(A, interest("/a").nonce(1).lifetime(10))[0].headers.token;
    node.wait(10);
    let new = node.interest(A, interest("/a").nonce(2))[0].headers.token;
    assert_ne!(old, new, "same slot, another generation");
    let outgoing = node.take(UP, Headers { token: old, ..Headers::default() }, &data("/a"));
    assert_eq!(
        (texts(&outgoing), node.counters().tokens_wrong),
        (one(A, "Data /a"), 1),
        "the name matches"
    );
}

#[test]
fn arbitrary_tokens_are_counted_as_wrong() {
    let mut node = Node::new();
    node.interest(A, interest("/a"));
    for bytes in [&[][..], &[0], &[0; 8], &[255; 8], &[7; 32]] {
        assert!(node.take(UP, token(bytes), &data("/b")).is_empty());
    }
    assert_eq!(node.counters().tokens_wrong, 4);
    assert_eq!(node.data(UP, "/a").len(), 1);
}

#[test]
fn data_satisfies_every_prefix_with_can_be_prefix() {
    let mut node = Node::new();
    node.interest(A, interest("/a").prefix().nonce(1));
    node.interest(B, interest("/a/b").prefix().nonce(2));
    node.interest(C, interest("/a/b/c").nonce(3));
    node.interest(RADIO, interest("/a/b").nonce(4));
    node.interest(UP2, interest("/a/x").prefix().nonce(5));
    assert_eq!(node.data(UP, "/a/b/c").faces(), [A, B, C]);
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (2, 3));
}

#[test]
fn a_prefix_consists_of_whole_components() {
    let mut node = Node::new();
    node.interest(A, interest("/ab").prefix());
    assert!(node.data(UP, "/abc").is_empty());
    assert_eq!(node.data(UP, "/ab/c").len(), 1);
}

#[test]
fn data_satisfies_an_interest_for_its_digest() {
    let mut node = Node::new();
    let wire = data("/a");
    let digest: String =
        Data::read(&wire).unwrap().digest().iter().map(|byte| format!("{byte:02x}")).collect();
    let full = format!("/a/sha256digest={digest}");
    node.interest(A, interest(&full));
    assert!(node.take(UP, Headers::default(), &data_with("/a", None, b"another")).is_empty());
    assert_eq!(node.take(UP, Headers::default(), &wire).faces(), [A]);
    assert_eq!(
        texts(&node.interest(B, interest(&full).nonce(2))),
        one(B, "Data /a"),
        "the content store answers, too"
    );
    let other = full.replace(&digest[..2], if &digest[..2] == "00" { "01" } else { "00" });
    assert_eq!(node.interest(B, interest(&other).nonce(3))[0].face, UP);
}

#[test]
fn a_face_with_several_interests_gets_the_data_once() {
    let mut node = Node::new();
    node.take(A, token(b"first"), &interest("/a").prefix().nonce(1).wire());
    node.take(A, token(b"second"), &interest("/a/b").nonce(2).wire());
    node.take(A, token(b"third"), &interest("/a/b").fresh().nonce(3).wire());
    let outgoing = node.data(UP, "/a/b");
    assert_eq!((outgoing.faces(), outgoing[0].headers.token), (vec![A], token(b"first").token));
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (0, 3));
}

#[test]
fn a_face_with_an_expired_interest_gets_no_data() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(1).lifetime(100));
    node.interest(B, interest("/a").nonce(2).lifetime(300));
    node.wait(100);
    assert_eq!(node.data(UP, "/a").faces(), [B]);
}

#[test]
fn data_after_the_expiry_is_unsolicited() {
    let mut node = Node::new();
    node.interest(A, interest("/a").lifetime(100));
    node.now_ms += 100;
    assert!(node.data(UP, "/a").is_empty());
    assert_eq!((node.dropped(Drop::Unsolicited), node.counters().unsatisfied), (1, 1));
}

#[test]
fn data_is_not_sent_to_its_sender_except_on_ad_hoc_links() {
    let mut node = Node::new();
    node.interest(A, interest("/a").nonce(1));
    node.interest(B, interest("/a").nonce(2));
    assert_eq!(node.data(A, "/a").faces(), [B]);
    node.interest(RADIO, interest("/b"));
    assert_eq!(node.data(RADIO, "/b").faces(), [RADIO]);
}

#[test]
fn localhost_data_is_accepted_only_from_local_faces() {
    let mut node = Node::new();
    node.route("/localhost", APP, 1);
    node.interest(crate::support::APP2, interest("/localhost/a"));
    assert!(node.data(UP, "/localhost/a").is_empty());
    assert_eq!(node.dropped(Drop::Scope), 1);
    assert_eq!(node.data(APP, "/localhost/a").len(), 1);
}

#[test]
fn congestion_marks_are_forwarded_in_both_directions() {
    let mut node = Node::new();
    let marked = Headers { congestion_mark: 1, ..Headers::default() };
    assert_eq!(node.take(A, marked, &interest("/a").wire())[0].headers.congestion_mark, 1);
    assert_eq!(node.take(UP, marked, &data("/a"))[0].headers.congestion_mark, 1);
}

#[test]
fn a_data_with_a_nack_header_is_malformed() {
    let mut node = Node::new();
    node.interest(A, interest("/a"));
    let nack =
        Headers { nack: Some(ringtap_ndn::packets::NackReason::NoRoute), ..Headers::default() };
    assert!(node.take(UP, nack, &data("/a")).is_empty());
    assert_eq!((node.dropped(Drop::Malformed), node.forwarder.pending()), (1, 1));
}
