//! Tests of the checks, one reason for refusal after the other.

use ringtap_base::SplitMix;
use sha2::{Digest, Sha256};

use super::*;
use crate::packets::NewInterest;
use crate::packets::management::NewCommand;
use crate::packets::signature::Signer;

const NOW_MS: u64 = 1_700_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const KEYED: [SignatureType; 3] =
    [SignatureType::Hmac, SignatureType::Ecdsa, SignatureType::Ed25519];

fn name(text: &str) -> NameBuf {
    text.parse().unwrap()
}

/// A new key, with this key locator in its signatures, and an anchor that accepts it.
fn pair(of: SignatureType, locator: &str) -> (Signer, Anchor) {
    let secret = Signer::generate(of).unwrap();
    let (signer, key) = match of {
        SignatureType::Hmac => {
            (Signer::hmac(&secret, name(locator)), VerifyingKey::hmac(&secret).unwrap())
        }
        _ => {
            let signer = Signer::from_der(&secret, name(locator)).unwrap();
            let key = VerifyingKey::from_spki(&signer.public().unwrap()).unwrap();
            (Ok(signer), key)
        }
    };
    (signer.unwrap(), anchor(locator, key))
}

fn anchor(locator: &str, key: VerifyingKey) -> Anchor {
    let (allow, prefix, valid_ms) = (vec![Module::Rib], NameBuf::default(), (0, u64::MAX));
    Anchor { name: name(locator), key, allow, prefix, valid_ms }
}

fn trust(anchors: impl IntoIterator<Item = Anchor>) -> Trust {
    let anchors = anchors.into_iter().collect();
    Trust::new(TrustSettings { anchors, sign_local: false })
}

/// A command for `/example/a`, signed at this time.
fn signed(signer: &Signer, time_ms: u64) -> Vec<u8> {
    signed_for(signer, time_ms, ("rib", "register"), Some("/example/a"), None)
}

fn signed_for(
    signer: &Signer,
    time_ms: u64,
    (module, verb): (&str, &str),
    prefix: Option<&str>,
    face: Option<u64>,
) -> Vec<u8> {
    let parameters = ControlParameters { name: prefix.map(name), face, ..Default::default() };
    let parameters = &parameters;
    let nonce = time_ms as u32;
    let mut wire = Vec::new();
    NewCommand { scope: "localhop", application: "nfd", module, verb, parameters, nonce, time_ms }
        .sign(signer, &mut wire)
        .unwrap();
    wire
}

const NEIGHBOUR: Received =
    Received { face: 300, is_local: false, now_ns: SECOND_NS, clock_ms: NOW_MS };

/// Checks a command that is complete.
fn check(trust: &mut Trust, received: Received, wire: &[u8]) -> Result<(), RefusedCommand> {
    let interest = Interest::read(wire).unwrap();
    trust.check(&received, &interest, &Command::read(&interest).unwrap())
}

#[test]
fn each_type_of_signature_is_accepted_and_no_command_twice() {
    for of in KEYED {
        let (signer, anchor) = pair(of, "/example/KEY/1");
        let mut trust = trust([anchor]);
        let wire = signed(&signer, NOW_MS);
        assert_eq!(check(&mut trust, NEIGHBOUR, &wire), Ok(()), "{of:?}");
        let other_face = Received { face: 301, ..NEIGHBOUR };
        for sender in [NEIGHBOUR, other_face] {
            assert_eq!(check(&mut trust, sender, &wire), Err(RefusedCommand::Replay), "{of:?}");
        }
        let earlier = signed(&signer, NOW_MS - 1);
        assert_eq!(check(&mut trust, NEIGHBOUR, &earlier), Err(RefusedCommand::Replay));
        assert_eq!(check(&mut trust, NEIGHBOUR, &signed(&signer, NOW_MS + 1)), Ok(()));
    }
}

#[test]
fn without_an_anchor_of_the_key_a_command_is_refused() {
    for of in KEYED {
        let (signer, own) = pair(of, "/example/KEY/1");
        let wire = signed(&signer, NOW_MS);
        let no_anchor = Err(RefusedCommand::NoAnchor);
        assert_eq!(check(&mut trust([]), NEIGHBOUR, &wire), no_anchor);
        let (_, elsewhere) = pair(of, "/example/KEY/2");
        assert_eq!(check(&mut trust([elsewhere]), NEIGHBOUR, &wire), no_anchor);
        // An anchor of the name, but of another type: the key of another type is never used.
        let other = KEYED.into_iter().find(|one| *one != of).unwrap();
        let (_, other) = pair(other, "/example/KEY/1");
        assert_eq!(check(&mut trust([other]), NEIGHBOUR, &wire), no_anchor);
        // Another key of the same name and type.
        let (_, wrong) = pair(of, "/example/KEY/1");
        let bad = Err(RefusedCommand::BadSignature);
        assert_eq!(check(&mut trust([wrong.clone()]), NEIGHBOUR, &wire), bad);
        // The longest matching name applies.
        let short = Anchor { name: name("/example"), ..wrong };
        assert_eq!(check(&mut trust([short.clone(), own.clone()]), NEIGHBOUR, &wire), Ok(()));
        assert_eq!(check(&mut trust([short]), NEIGHBOUR, &wire), bad);
    }
}

#[test]
fn a_flipped_bit_of_the_command_is_refused() {
    for of in KEYED {
        let (signer, anchor) = pair(of, "/example/KEY/1");
        let wire = signed(&signer, NOW_MS);
        // The nonce of the Interest and MustBeFresh before it are not signed.
        let nonce = [&[10, 4][..], &(NOW_MS as u32).to_be_bytes()].concat();
        let at = wire.windows(6).position(|part| part == nonce).unwrap();
        for place in (0..wire.len()).filter(|place| !(at - 2..at + 6).contains(place)) {
            let mut changed = wire.clone();
            changed[place] ^= 1 << (place % 8);
            let Ok(interest) = Interest::read(&changed) else { continue };
            let Ok(command) = Command::read(&interest) else { continue };
            let checked = trust([anchor.clone()]).check(&NEIGHBOUR, &interest, &command);
            assert!(checked.is_err(), "{of:?}: byte {place}");
        }
    }
}

#[test]
fn times_far_from_the_clock_are_refused() {
    let (signer, anchor) = pair(SignatureType::Ed25519, "/k");
    for (time_ms, expected) in [
        (NOW_MS - 120_001, Err(RefusedCommand::Time)),
        (NOW_MS - 120_000, Ok(())),
        (NOW_MS + 120_000, Ok(())),
        (NOW_MS + 120_001, Err(RefusedCommand::Time)),
        (0, Err(RefusedCommand::Time)),
        (u64::MAX, Err(RefusedCommand::Time)),
    ] {
        let wire = signed(&signer, time_ms);
        assert_eq!(check(&mut trust([anchor.clone()]), NEIGHBOUR, &wire), expected, "{time_ms}");
    }
    let expired = Anchor { valid_ms: (0, NOW_MS - 1), ..anchor };
    let wire = signed(&signer, NOW_MS);
    assert_eq!(check(&mut trust([expired]), NEIGHBOUR, &wire), Err(RefusedCommand::Expired));
}

#[test]
fn a_key_registers_only_its_prefix_and_a_neighbour_only_its_own_face() {
    let (signer, anchor) = pair(SignatureType::Hmac, "/k");
    let mut trust = trust([Anchor { prefix: name("/example"), ..anchor }]);
    let mut time_ms = NOW_MS;
    for (prefix, face, expected) in [
        (Some("/example"), None, Ok(())),
        (Some("/example/b"), Some(0), Ok(())),
        (Some("/example/b"), Some(300), Ok(())),
        (Some("/exampleb"), None, Err(RefusedCommand::Prefix)),
        (Some("/"), None, Err(RefusedCommand::Prefix)),
        (Some("/example"), Some(301), Err(RefusedCommand::OtherFace)),
        (Some("/example"), Some(300 + (1 << 32)), Err(RefusedCommand::OtherFace)),
        // The parameters are refused when the command is executed.
        (None, None, Ok(())),
    ] {
        for verb in ["register", "unregister"] {
            time_ms += 1;
            let wire = signed_for(&signer, time_ms, ("rib", verb), prefix, face);
            assert_eq!(check(&mut trust, NEIGHBOUR, &wire), expected, "{prefix:?} {face:?}");
        }
    }
}

#[test]
fn a_neighbour_uses_only_registrations_and_a_key_only_its_modules() {
    let (signer, anchor) = pair(SignatureType::Ed25519, "/k");
    let mut trust = trust([Anchor { allow: Module::ALL.to_vec(), ..anchor.clone() }]);
    for of in [("faces", "create"), ("strategy-choice", "set"), ("rib", "list"), ("x", "register")]
    {
        let wire = signed_for(&signer, NOW_MS, of, Some("/a"), None);
        assert_eq!(check(&mut trust, NEIGHBOUR, &wire), Err(RefusedCommand::NotAllowed), "{of:?}");
    }
    let mut trust = self::trust([Anchor { allow: vec![Module::Faces], ..anchor }]);
    let wire = signed(&signer, NOW_MS);
    assert_eq!(check(&mut trust, NEIGHBOUR, &wire), Err(RefusedCommand::NotAllowed));
}

#[test]
fn local_programs_sign_only_if_configured() {
    let program = Received { is_local: true, ..NEIGHBOUR };
    let (signer, anchor) = pair(SignatureType::Ecdsa, "/k");
    let anchor = Anchor { allow: vec![Module::Rib, Module::Faces], ..anchor };
    let mut open = trust([]);
    let settings = TrustSettings { anchors: vec![anchor], sign_local: true };
    let mut strict = Trust::new(settings);
    let plain = |text: &str| {
        let (name, mut wire) = (name(text), Vec::new());
        NewInterest::new(name.as_name(), 1).write(&mut wire);
        wire
    };
    for (text, refused) in [
        ("/localhost/nfd/rib/register/x", true),
        ("/localhost/nfd/faces/destroy/x", true),
        ("/localhost/nfd/strategy-choice/unset/x", true),
        ("/localhost/nfd/rib/list", false),
        ("/localhost/nfd/faces/query/x", false),
        ("/localhost/nfd/status/general", false),
    ] {
        assert_eq!(check(&mut open, program, &plain(text)), Ok(()), "{text}");
        let expected = if refused { Err(RefusedCommand::Unsigned) } else { Ok(()) };
        assert_eq!(check(&mut strict, program, &plain(text)), expected, "{text}");
    }
    // A program may name other faces.
    let wire = signed_for(&signer, NOW_MS, ("rib", "register"), Some("/a"), Some(9));
    assert_eq!(check(&mut strict, program, &wire), Ok(()));
    let wire = signed_for(&signer, NOW_MS + 1, ("faces", "destroy"), None, Some(9));
    assert_eq!(check(&mut strict, program, &wire), Ok(()));
    let wire = signed_for(&signer, NOW_MS + 2, ("strategy-choice", "set"), Some("/a"), None);
    assert_eq!(check(&mut strict, program, &wire), Err(RefusedCommand::NotAllowed));
}

#[test]
fn a_digest_needs_an_anchor_and_no_order_in_time() {
    let command = |nonce, time_ms| {
        let parameters = ControlParameters { name: Some(name("/a")), ..Default::default() };
        let (scope, module, verb) = ("localhop", "rib", "register");
        let mut wire = Vec::new();
        NewCommand {
            scope,
            application: "nfd",
            module,
            verb,
            parameters: &parameters,
            nonce,
            time_ms,
        }
        .write(&mut wire);
        wire
    };
    let (_, keyed) = pair(SignatureType::Hmac, "/");
    let no_anchor = Err(RefusedCommand::NoAnchor);
    assert_eq!(check(&mut trust([keyed]), NEIGHBOUR, &command(1, NOW_MS)), no_anchor);
    let mut trust = trust([anchor("/", VerifyingKey::digest().unwrap())]);
    assert_eq!(check(&mut trust, NEIGHBOUR, &command(1, NOW_MS)), Ok(()));
    assert_eq!(check(&mut trust, NEIGHBOUR, &command(1, NOW_MS)), Err(RefusedCommand::Replay));
    assert_eq!(check(&mut trust, NEIGHBOUR, &command(2, NOW_MS - 5)), Ok(()));
    let late = command(3, NOW_MS - 200_000);
    assert_eq!(check(&mut trust, NEIGHBOUR, &late), Err(RefusedCommand::Time));
}

#[test]
fn failed_verifications_are_limited_per_second() {
    let (_, anchor) = pair(SignatureType::Ed25519, "/k");
    let (forger, _) = pair(SignatureType::Ed25519, "/k");
    let wire = signed(&forger, NOW_MS);
    let (bad, too_many) = (Err(RefusedCommand::BadSignature), Err(RefusedCommand::TooMany));
    let mut trust = trust([anchor]);
    for number in 0..25 {
        let expected = if number < FAILURES_OF_FACE { bad } else { too_many };
        assert_eq!(check(&mut trust, NEIGHBOUR, &wire), expected, "{number}");
    }
    // Other faces have their own limit, up to the limit of all neighbours.
    let mut verified = FAILURES_OF_FACE;
    for face in 400..600 {
        let sender = Received { face, ..NEIGHBOUR };
        verified += (0..5).filter(|_| check(&mut trust, sender, &wire) == bad).count() as u32;
    }
    assert_eq!(verified, FAILURES_OF_NEIGHBOURS);
    assert!(trust.failures.of_face.len() <= FAILURES_OF_NEIGHBOURS as usize);
    let later = Received { now_ns: 2 * SECOND_NS, ..NEIGHBOUR };
    assert_eq!(check(&mut trust, later, &wire), bad);
    assert_eq!(trust.failures.of_face.len(), 1);
}

#[test]
fn neighbours_cannot_register_reserved_prefixes_nor_announced_routes() {
    let (signer, anchor) = pair(SignatureType::Hmac, "/k");
    let settings = TrustSettings { anchors: vec![anchor], sign_local: true };
    let mut trust = Trust::new(settings);
    let mut time_ms = NOW_MS;
    for (prefix, origin, expected) in [
        ("/localhost", None, Err(RefusedCommand::ReservedPrefix)),
        ("/localhost/nlsr", Some(0), Err(RefusedCommand::ReservedPrefix)),
        ("/localhop/a", None, Err(RefusedCommand::ReservedPrefix)),
        ("/localhosts", None, Ok(())),
        ("/a", Some(65), Err(RefusedCommand::Origin)),
        ("/a", Some(64), Ok(())),
    ] {
        let name = Some(name(prefix));
        let parameters = &ControlParameters { name, origin, ..Default::default() };
        for is_local in [false, true] {
            time_ms += 1;
            let (scope, application, module, verb) = ("localhop", "nfd", "rib", "register");
            let mut wire = Vec::new();
            NewCommand {
                scope,
                application,
                module,
                verb,
                parameters,
                nonce: time_ms as u32,
                time_ms,
            }
            .sign(&signer, &mut wire)
            .unwrap();
            let expected = if is_local { Ok(()) } else { expected };
            let sender = Received { is_local, ..NEIGHBOUR };
            assert_eq!(check(&mut trust, sender, &wire), expected, "{prefix} {origin:?}");
        }
    }
}

#[test]
fn commands_that_are_accepted_do_not_count_as_failures() {
    let (signer, anchor) = pair(SignatureType::Hmac, "/k");
    let mut trust = trust([anchor]);
    for number in 0..1_000 {
        assert_eq!(check(&mut trust, NEIGHBOUR, &signed(&signer, NOW_MS + number)), Ok(()));
    }
}

#[test]
fn unsupported_and_malformed_signatures_have_their_own_reasons() {
    let (signer, anchor) = pair(SignatureType::Hmac, "/k");
    let mut trust = trust([anchor]);
    let wire = signed(&signer, NOW_MS);
    // The SignatureType (1b 01 04) with the number of RSA; the digest in the name is updated.
    let at = wire.windows(3).position(|part| part == [0x1b, 1, 4]).unwrap();
    let with = |number: u8| {
        let mut changed = wire.clone();
        changed[at + 2] = number;
        redigested(changed)
    };
    assert_eq!(check(&mut trust, NEIGHBOUR, &with(1)), Err(RefusedCommand::Unsupported));
    assert_eq!(check(&mut trust, NEIGHBOUR, &with(200)), Err(RefusedCommand::Unsupported));
    let mut changed = wire.clone();
    changed[at] = 0x1d;
    let changed = redigested(changed);
    assert_eq!(check(&mut trust, NEIGHBOUR, &changed), Err(RefusedCommand::Malformed));
}

/// The position of empty ApplicationParameters, followed by an InterestSignatureInfo.
fn parameters_at(wire: &[u8]) -> Option<usize> {
    wire.windows(3).position(|part| part == [0x24, 0, 0x2c])
}

/// The command with the digest of its changed parameters in its name.
fn redigested(mut wire: Vec<u8>) -> Vec<u8> {
    let digest_at = wire.windows(2).position(|part| part == [2, 32]).map(|at| at + 2);
    if let (Some(start), Some(at)) = (parameters_at(&wire), digest_at) {
        let digest = Sha256::digest(&wire[start..]);
        wire[at..at + 32].copy_from_slice(&digest);
    }
    wire
}

#[test]
fn random_bytes_in_commands_are_refused_without_panic() {
    let (signer, anchor) = pair(SignatureType::Hmac, "/k");
    let mut trust = trust([anchor]);
    let mut random = SplitMix::new(7);
    let wire = signed(&signer, NOW_MS);
    let start = parameters_at(&wire).unwrap();
    let (mut read, mut reasons) = (0, [0; RefusedCommand::ALL.len()]);
    for round in 0..60_000_u64 {
        let mut changed = wire.clone();
        for _ in 0..=random.below(4) {
            let at = start + random.below((changed.len() - start) as u64) as usize;
            changed[at] = random.next() as u8;
        }
        // Half of them have a correct digest, so that the signature's elements are parsed.
        if round % 2 == 0 {
            changed = redigested(changed);
        }
        let Ok(interest) = Interest::read(&changed) else { continue };
        let Ok(command) = Command::read(&interest) else { continue };
        if changed == wire {
            continue;
        }
        read += 1;
        let received = Received { now_ns: round * SECOND_NS, ..NEIGHBOUR };
        match trust.check(&received, &interest, &command) {
            Ok(()) => panic!("accepted: {changed:x?}"),
            Err(reason) => reasons[reason as usize] += 1,
        }
    }
    assert!(read > 10_000, "{read}");
    for reason in
        [RefusedCommand::BadSignature, RefusedCommand::Malformed, RefusedCommand::NoAnchor]
    {
        assert!(reasons[reason as usize] > 100, "{reason:?}: {reasons:?}");
    }
}

#[test]
fn reasons_have_distinct_names_in_order() {
    let names: std::collections::BTreeSet<_> =
        RefusedCommand::ALL.map(RefusedCommand::name).into_iter().collect();
    assert_eq!(names.len(), RefusedCommand::ALL.len());
    for (at, reason) in RefusedCommand::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, at);
        assert!(!reason.text().is_empty());
    }
}
