//! Stamps: frames stay valid for an independent parser and contain what was written.

use ringtap_traffic::{GeneratedFrame, Generator, Profile, Reading, Stamp};

use crate::decode::decode;

fn stamp(number: u64) -> Stamp {
    Stamp { run: 0xbeef, stream: 3, number, sent_ns: Some(number + 1) }
}

/// A UDP datagram over IPv4 with this much payload and no checksum.
fn datagram(payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 28 + payload as u8, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 192, 0, 2, 1, 4, 0, 0, 53, 0, 8 + payload as u8, 0, 0]);
    frame.resize(42 + payload, 0);
    frame
}

#[test]
fn frames_with_room_are_stamped_and_stay_valid() {
    let mix = Profile::named("mix").unwrap();
    let profile = Profile { packets: 20_000, flows: 1_000, tcp_share: 0.3, ..mix };
    let mut generator = Generator::new(&profile, 5).unwrap();
    let (mut stamped, mut without) = (0_u64, 0_u64);
    while let Some(frame) = generator.next() {
        let before = decode(&frame);
        let mut bytes = frame.data.to_vec();
        let wanted = stamp(stamped);
        if !wanted.write(&mut bytes) {
            assert_eq!((bytes.as_slice(), Stamp::read(&bytes)), (frame.data, Reading::Unstamped));
            without += 1;
            continue;
        }
        assert_eq!(Stamp::read(&bytes), Reading::Stamped(wanted));
        // Verifies all lengths and checksums.
        let after = decode(&GeneratedFrame { data: &bytes, ..frame });
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
        stamped += 1;
    }
    assert!(stamped > 1_000 && without > 5_000, "{stamped} and {without}");
}

#[test]
fn the_smallest_datagram_has_room_and_a_smaller_one_has_none() {
    let mut frame = datagram(18);
    assert_eq!(frame.len(), 60);
    assert!(stamp(1).write(&mut frame));
    assert_eq!(frame[40..42], [0, 0], "no checksum before, none after");
    assert_eq!(Stamp::read(&frame), Reading::Stamped(stamp(1)));
    let mut less = datagram(17);
    less.resize(60, 0);
    assert!(!stamp(1).write(&mut less), "padding is no payload");
    assert_eq!(&less[..59], &datagram(17)[..]);
}

#[test]
fn the_largest_numbers_come_back() {
    let mut frame = datagram(30);
    let last = Stamp { number: (1 << 48) - 1, sent_ns: None, ..stamp(0) };
    assert!(last.write(&mut frame));
    assert_eq!(Stamp::read(&frame), Reading::Stamped(last));
}

#[test]
fn latency_is_modulo_18_minutes_and_may_be_negative() {
    let sent = |sent_ns| Stamp { sent_ns, ..stamp(0) };
    assert_eq!(sent(Some(100)).latency_ns(350), Some(250));
    assert_eq!(sent(Some((1 << 40) - 50)).latency_ns((9 << 40) + 50), Some(100));
    assert_eq!(sent(Some(350)).latency_ns(100), Some(-250));
    assert_eq!(sent(None).latency_ns(100), None);
    // A missing time differs from the time 0.
    let mut frame = datagram(18);
    assert!(sent(Some(7 << 40)).write(&mut frame));
    assert_eq!(Stamp::read(&frame), Reading::Stamped(sent(Some(1))));
}

#[test]
fn a_changed_byte_is_detected_by_the_checksum() {
    let profile = Profile { packets: 500, flows: 20, ..Profile::default() };
    let mut generator = Generator::new(&profile, 1).unwrap();
    let mut tried = 0;
    while let Some(frame) = generator.next() {
        let mut bytes = frame.data.to_vec();
        if !stamp(9).write(&mut bytes) || tried > 20 {
            continue;
        }
        tried += 1;
        for at in 0..bytes.len().min(400) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            let read = Stamp::read(&wrong);
            // IPv4 and IPv6 without tags: from the source address on.
            let addresses = if bytes[12] == 8 { 26 } else { 22 };
            if at >= addresses {
                assert!(!matches!(read, Reading::Stamped(_)), "byte {at}: {read:?}");
            }
        }
        // Behind the magic number only the checksum can detect the change.
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(Stamp::read(&bytes), Reading::Corrupted);
    }
    assert!(tried > 10);
}

#[test]
fn truncated_frames_have_no_room_and_no_bytes_cause_a_panic() {
    let mut whole = datagram(40);
    assert!(stamp(0).write(&mut whole));
    for len in 0..whole.len() {
        let mut cut = whole[..len].to_vec();
        assert!(!stamp(0).write(&mut cut), "{len}");
        assert_eq!(Stamp::read(&whole[..len]), Reading::Unstamped);
    }
    for at in 0..whole.len() {
        for value in 0..=255 {
            let mut wrong = whole.clone();
            wrong[at] = value;
            let _ = Stamp::read(&wrong);
            let _ = stamp(0).write(&mut wrong);
        }
    }
}
