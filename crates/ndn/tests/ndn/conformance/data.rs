//! Rules about Data.

use ringtap_ndn::forwarder::{Drop, Settings, Unsolicited};
use ringtap_ndn::packets::{Data, Headers};

use crate::support::{
    A, APP, B, C, Faces as _, Node, RADIO, UP, UP2, ask, data, data_with, one, texts, token,
};

#[test]
fn data_goes_back_the_way_the_interest_came_with_the_token_of_each() {
    let mut node = Node::new();
    node.take(A, token(b"of A"), &ask("/a").nonce(1).wire());
    node.take(B, token(b"of B"), &ask("/a").nonce(2).wire());
    let left = node.data(UP, "/a");
    assert_eq!(left.faces(), [A, B]);
    assert_eq!(
        [left[0].headers.token, left[1].headers.token],
        [token(b"of A").token, token(b"of B").token]
    );
    assert!(left.iter().all(|left| left.wire == data("/a")), "byte by byte");
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (0, 1));
}

#[test]
fn one_data_answers_one_interest_once() {
    let mut node = Node::new();
    node.ask(A, ask("/a"));
    assert_eq!(node.data(UP, "/a").len(), 1);
    assert!(node.data(UP, "/a").is_empty());
    assert_eq!(node.dropped(Drop::Unsolicited), 1);
}

#[test]
fn unsolicited_data_is_neither_passed_on_nor_kept() {
    let mut node = Node::new();
    assert!(node.data(UP, "/a").is_empty());
    assert!(node.data(APP, "/a").is_empty());
    assert_eq!((node.forwarder.kept(), node.dropped(Drop::Unsolicited)), (0, 2));
    assert_eq!(
        texts(&node.ask(A, ask("/a"))),
        one(UP, "Interest /a"),
        "nobody's cache is poisoned"
    );
}

#[test]
fn unsolicited_data_of_local_faces_is_kept_if_so_wished() {
    let mut node =
        Node::with(Settings { unsolicited: Unsolicited::KeepLocal, ..Settings::default() });
    node.data(UP, "/a");
    node.data(APP, "/b");
    assert_eq!(node.forwarder.kept(), 1);
    assert_eq!(texts(&node.ask(A, ask("/b"))), one(A, "Data /b"));
}

#[test]
fn a_token_without_the_name_proves_nothing() {
    let mut node = Node::new();
    let sent = node.ask(A, ask("/a"));
    let headers = Headers { token: sent[0].headers.token, ..Headers::default() };
    assert!(node.take(UP, headers, &data("/other")).is_empty());
    assert_eq!((node.forwarder.pending(), node.forwarder.kept()), (1, 0));
    assert_eq!((node.counters().tokens_wrong, node.dropped(Drop::Unsolicited)), (1, 1));
    assert_eq!(texts(&node.take(UP, headers, &data("/a"))), one(A, "Data /a"));
    assert_eq!(node.counters().tokens_right, 1);
}

#[test]
fn a_token_of_an_entry_that_is_gone_is_known_as_such() {
    let mut node = Node::new();
    let old = node.ask(A, ask("/a").nonce(1).lifetime(10))[0].headers.token;
    node.wait(10);
    let new = node.ask(A, ask("/a").nonce(2))[0].headers.token;
    assert_ne!(old, new, "the place is the same, the generation is not");
    let left = node.take(UP, Headers { token: old, ..Headers::default() }, &data("/a"));
    assert_eq!(
        (texts(&left), node.counters().tokens_wrong),
        (one(A, "Data /a"), 1),
        "the name is right"
    );
}

#[test]
fn tokens_of_any_kind_are_survived() {
    let mut node = Node::new();
    node.ask(A, ask("/a"));
    for bytes in [&[][..], &[0], &[0; 8], &[255; 8], &[7; 32]] {
        assert!(node.take(UP, token(bytes), &data("/b")).is_empty());
    }
    assert_eq!(node.counters().tokens_wrong, 4);
    assert_eq!(node.data(UP, "/a").len(), 1);
}

#[test]
fn data_answers_every_prefix_that_longer_names_will_do_for() {
    let mut node = Node::new();
    node.ask(A, ask("/a").prefix().nonce(1));
    node.ask(B, ask("/a/b").prefix().nonce(2));
    node.ask(C, ask("/a/b/c").nonce(3));
    node.ask(RADIO, ask("/a/b").nonce(4));
    node.ask(UP2, ask("/a/x").prefix().nonce(5));
    assert_eq!(node.data(UP, "/a/b/c").faces(), [A, B, C]);
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (2, 3));
}

#[test]
fn a_name_that_begins_with_the_same_letters_is_no_prefix() {
    let mut node = Node::new();
    node.ask(A, ask("/ab").prefix());
    assert!(node.data(UP, "/abc").is_empty());
    assert_eq!(node.data(UP, "/ab/c").len(), 1);
}

#[test]
fn data_answers_an_interest_for_its_digest() {
    let mut node = Node::new();
    let wire = data("/a");
    let digest: String =
        Data::read(&wire).unwrap().digest().iter().map(|byte| format!("{byte:02x}")).collect();
    let full = format!("/a/sha256digest={digest}");
    node.ask(A, ask(&full));
    assert!(node.take(UP, Headers::default(), &data_with("/a", None, b"another")).is_empty());
    assert_eq!(node.take(UP, Headers::default(), &wire).faces(), [A]);
    assert_eq!(
        texts(&node.ask(B, ask(&full).nonce(2))),
        one(B, "Data /a"),
        "from the content store, too"
    );
    let other = full.replace(&digest[..2], if &digest[..2] == "00" { "01" } else { "00" });
    assert_eq!(node.ask(B, ask(&other).nonce(3))[0].face, UP);
}

#[test]
fn a_face_with_several_interests_gets_the_data_once() {
    let mut node = Node::new();
    node.take(A, token(b"first"), &ask("/a").prefix().nonce(1).wire());
    node.take(A, token(b"second"), &ask("/a/b").nonce(2).wire());
    node.take(A, token(b"third"), &ask("/a/b").fresh().nonce(3).wire());
    let left = node.data(UP, "/a/b");
    assert_eq!((left.faces(), left[0].headers.token), (vec![A], token(b"first").token));
    assert_eq!((node.forwarder.pending(), node.counters().satisfied), (0, 3));
}

#[test]
fn who_gave_up_gets_nothing() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(1).lifetime(100));
    node.ask(B, ask("/a").nonce(2).lifetime(300));
    node.wait(100);
    assert_eq!(node.data(UP, "/a").faces(), [B]);
}

#[test]
fn data_that_comes_too_late_is_unsolicited() {
    let mut node = Node::new();
    node.ask(A, ask("/a").lifetime(100));
    node.now_ms += 100;
    assert!(node.data(UP, "/a").is_empty());
    assert_eq!((node.dropped(Drop::Unsolicited), node.counters().unsatisfied), (1, 1));
}

#[test]
fn data_does_not_go_back_but_on_a_radio() {
    let mut node = Node::new();
    node.ask(A, ask("/a").nonce(1));
    node.ask(B, ask("/a").nonce(2));
    assert_eq!(node.data(A, "/a").faces(), [B]);
    node.ask(RADIO, ask("/b"));
    assert_eq!(node.data(RADIO, "/b").faces(), [RADIO]);
}

#[test]
fn data_of_this_machine_comes_from_local_faces() {
    let mut node = Node::new();
    node.route("/localhost", APP, 1);
    node.ask(crate::support::APP2, ask("/localhost/a"));
    assert!(node.data(UP, "/localhost/a").is_empty());
    assert_eq!(node.dropped(Drop::Scope), 1);
    assert_eq!(node.data(APP, "/localhost/a").len(), 1);
}

#[test]
fn congestion_marks_are_passed_on_both_ways() {
    let mut node = Node::new();
    let marked = Headers { congestion_mark: 1, ..Headers::default() };
    assert_eq!(node.take(A, marked, &ask("/a").wire())[0].headers.congestion_mark, 1);
    assert_eq!(node.take(UP, marked, &data("/a"))[0].headers.congestion_mark, 1);
}

#[test]
fn a_nack_of_a_data_is_nonsense() {
    let mut node = Node::new();
    node.ask(A, ask("/a"));
    let nack =
        Headers { nack: Some(ringtap_ndn::packets::NackReason::NoRoute), ..Headers::default() };
    assert!(node.take(UP, nack, &data("/a")).is_empty());
    assert_eq!((node.dropped(Drop::Malformed), node.forwarder.pending()), (1, 1));
}
