//! Threads that use the same tables.

use ringtap_lab::exclusion::locked::Locked;
use ringtap_ndn::packets::{Headers, PitToken};

use crate::designs::{LOCKED, LOCKS};
use crate::steps::{configured, settings};
use crate::support::{A, UP, collect, data_with, interest};

/// Threads use the same tables: Interests in one, their Data in the other. No packet may be lost.
#[test]
fn threads_share_the_tables() {
    for sharing in LOCKED {
        let (forwarder, _) = Locked::workers(&settings(), 2, sharing, LOCKS);
        let forwarder = *configured(Box::new(forwarder));
        let Ok([mut consumer, mut producer]) = <[_; 2]>::try_from(forwarder.into_workers()) else {
            panic!("two workers")
        };
        let (sender, receiver) = std::sync::mpsc::sync_channel::<(String, PitToken)>(64);
        let answered = std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..6_000u32 {
                    let text = format!("/a/{number}");
                    let wire = interest(&text).nonce(number).wire();
                    let sent = collect(|out| {
                        let mut out = |f, h: &Headers, w: &[u8]| out(f, h, w);
                        consumer.take(1, A, &Headers::default(), &wire, &mut out);
                    });
                    assert_eq!(sent.len(), 1, "{text}");
                    sender.send((text, sent[0].headers.token)).unwrap();
                }
            });
            let mut answered = 0;
            for (text, token) in receiver {
                let headers = Headers { token, ..Headers::default() };
                let answer = data_with(&text, None, b"");
                let sent = collect(|out| {
                    let mut out = |f, h: &Headers, w: &[u8]| out(f, h, w);
                    producer.take(2, UP, &headers, &answer, &mut out);
                });
                assert_eq!(sent.len(), 1, "{sharing}: {text}");
                answered += 1;
            }
            answered
        });
        let counters = producer.counters();
        assert_eq!((counters.satisfied, counters.tokens_right), (answered, answered), "{sharing}");
    }
}
