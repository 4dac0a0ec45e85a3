use proptest::prelude::*;

use super::*;
use crate::State as _;
use crate::protocols::quic::seal::{Plain, protect};

const ONE: u32 = 1;
const TWO: u32 = 0x6b33_43cf;
const DRAFT_29: u32 = 0xff00_001d;
const FIRST: &[u8] = b"\x83\x94\xc8\xf0\x3e\x51\x57\x08";
const SECOND_NS: u64 = 1_000_000_000;

/// The CRYPTO frame of RFC 9001, appendix A.2.
const CLIENT: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c0000\
    0413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994\
    ec74d748002b0003020304000d0010000e0403050306030203080408050806002d00020101001c00024001003900320408ffffff\
    ffffffffff05048000ffff07048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff";
/// The ACK and CRYPTO frames of appendix A.3.
const SERVER: &str = "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a\
    045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00\
    020304";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = |pair| std::str::from_utf8(pair).unwrap();
    hexadecimal
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(digits(pair), 16).unwrap())
        .collect()
}

/// The client hello of RFC 9001, without the frame around it.
fn client_hello() -> Vec<u8> {
    bytes(CLIENT)[4..].to_vec()
}

fn server_hello() -> Vec<u8> {
    bytes(SERVER)[9..].to_vec()
}

/// A client hello with this server name, of at least this length.
fn named(name: &str, len: usize) -> Vec<u8> {
    let sized = |len: usize| (len as u16).to_be_bytes();
    let mut extensions =
        [&[0, 0], &sized(name.len() + 5)[..], &sized(name.len() + 3), b"\0"].concat();
    extensions.extend_from_slice(&sized(name.len()));
    extensions.extend_from_slice(name.as_bytes());
    extensions.extend_from_slice(&[&[0, 21], &sized(len)[..], &vec![0; len]].concat());
    let mut message = b"\x01\0\0\0\x03\x03".to_vec();
    message.extend_from_slice(&[7; 32]);
    message.extend_from_slice(b"\0\0\x02\x13\x01\x01\0");
    message.extend_from_slice(&sized(extensions.len()));
    message.extend_from_slice(&extensions);
    let body = (message.len() - 4) as u32;
    message[1..4].copy_from_slice(&body.to_be_bytes()[1..]);
    message
}

fn crypto_frame(offset: usize, data: &[u8]) -> Vec<u8> {
    let head = [
        (0x8000_0000 | offset as u32).to_be_bytes(),
        (0x8000_0000 | data.len() as u32).to_be_bytes(),
    ];
    [b"\x06", head.as_flattened(), data].concat()
}

const CLIENTS: Plain<'static> = Plain {
    version: ONE,
    from_client: true,
    first: FIRST,
    destination: FIRST,
    token: b"",
    number: 0,
    payload: b"",
};
const SERVERS: Plain<'static> = Plain { from_client: false, destination: b"", ..CLIENTS };

fn seal(plain: &Plain<'_>, payload: &[u8]) -> Vec<u8> {
    let padded = [payload, &[0; 30]].concat();
    Plain { payload: &padded, ..*plain }.seal().unwrap()
}

fn packet(from_client: bool, ts_ns: u64) -> PacketRecord {
    let (src_port, dst_port) = if from_client { (50_000, 443) } else { (443, 50_000) };
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    (src[0], dst[0]) = if from_client { (1, 2) } else { (2, 1) };
    PacketRecord { src, dst, src_port, dst_port, ts_ns, protocol: 17, ..PacketRecord::EMPTY }
}

/// A reader and the values it found, without protocols and kinds of hellos.
struct Reader {
    state: State,
    values: Vec<String>,
    messages: usize,
}

impl Reader {
    fn new(memory: usize) -> Self {
        Self { state: State::new(memory), values: Vec::new(), messages: 0 }
    }

    fn read(&mut self, record: &PacketRecord, bytes: &[u8]) -> Result<Progress, Unread> {
        let payload = Payload { record, bytes, sequence: 0 };
        let (values, messages) = (&mut self.values, &mut self.messages);
        Quic::read(&mut self.state, &payload, &mut |kind, value| match kind {
            Kind::Protocol => *messages += 1,
            Kind::QuicVersion | Kind::TlsServerName => {
                values.push(String::from_utf8_lossy(value).into_owned());
            }
            _ => {}
        })
    }

    fn client(&mut self, bytes: &[u8]) -> Result<Progress, Unread> {
        self.read(&packet(true, 0), bytes)
    }

    fn server(&mut self, bytes: &[u8]) -> Result<Progress, Unread> {
        self.read(&packet(false, 0), bytes)
    }

    /// The values since the last call.
    fn values(&mut self) -> Vec<String> {
        std::mem::take(&mut self.values)
    }

    /// Connections dropped for lack of room, and incomplete ones.
    fn dropped(&mut self, end: bool) -> [u64; 2] {
        let mut all = [0; 2];
        self.state.dropped(end, &mut |why, number| match why {
            Unread::NoRoom => all[0] += number,
            _ => all[1] += number,
        });
        all
    }
}

const DONE: Result<Progress, Unread> = Ok(Progress::Done);

#[test]
fn packets_of_the_standards_are_read() {
    let vectors = [
        (
            ONE,
            "c300000001088394c8f03e5157080000449e00000002",
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
            "e221af44860018ab0856972e194cd934",
            "c1000000010008f067a5502a4262b50040750001",
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5\
             a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4\
             cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
            "1",
        ),
        (
            TWO,
            "d36b3343cf088394c8f03e5157080000449e00000002",
            "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
            "a18b2faa745b6fe189cf772a9f84cbfc",
            "d16b3343cf0008f067a5502a4262b50040750001",
            "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89237bbf8726301791\
             5358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2c984c707\
             f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca84bed8521e2e140",
            "2",
        ),
    ];
    for (number, header, begin, tag, server_header, server, name) in vectors {
        let version = Version::of(number).unwrap();
        let keys = Keys::new(version, FIRST, Sender::Client).unwrap();
        let mut payload = bytes(CLIENT);
        payload.resize(1162, 0);
        let client = protect(&keys, &bytes(header), 2, &payload).unwrap();
        // The tag is the last part, and depends on all bytes before.
        assert!(client.starts_with(&bytes(begin)) && client.ends_with(&bytes(tag)));
        let keys = Keys::new(version, FIRST, Sender::Server).unwrap();
        let server = bytes(server);
        assert_eq!(protect(&keys, &bytes(server_header), 1, &bytes(SERVER)).unwrap(), server);
        let mut reader = Reader::new(1 << 20);
        assert_eq!(reader.client(&client), DONE);
        assert_eq!(reader.values(), [name, "example.com"]);
        assert_eq!(reader.server(&server), DONE);
        assert_eq!((reader.values(), reader.messages), (vec![name.to_owned()], 2));
        assert_eq!((reader.client(&client), reader.server(&server)), (DONE, DONE));
        assert_eq!((reader.messages, reader.dropped(true)), (2, [0, 0]));
    }
}

#[test]
fn a_hello_in_parts_is_joined() {
    let hello = named("parts.example", 3000);
    let part = |number: u16, cuts: &[(usize, usize)]| {
        let frames = cuts.iter().map(|&(begin, end)| crypto_frame(begin, &hello[begin..end]));
        let payload = frames.collect::<Vec<_>>().join(&b"\0\x01"[..]);
        seal(&Plain { number, ..CLIENTS }, &payload)
    };
    let first = part(0, &[(900, 1000), (0, 5), (20, 600)]);
    let second = part(1, &[(1000, hello.len()), (5, 20)]);
    let third = part(2, &[(600, 900)]);
    for order in [[&first, &second, &third], [&third, &first, &second], [&second, &third, &first]] {
        let mut reader = Reader::new(1 << 20);
        for (at, datagram) in order.iter().enumerate() {
            assert_eq!(reader.messages, 0);
            assert_eq!(reader.client(datagram), DONE);
            if at < 2 {
                assert_eq!(reader.client(datagram), DONE);
            }
        }
        assert_eq!(reader.values(), ["1", "parts.example"]);
        order.iter().for_each(|datagram| assert_eq!(reader.client(datagram), DONE));
        assert_eq!((reader.messages, reader.dropped(true)), (1, [0, 0]));
    }
}

#[test]
fn packets_of_one_datagram_are_read() {
    let hello = client_hello();
    let first = seal(&CLIENTS, &crypto_frame(100, &hello[100..]));
    let second = seal(&Plain { number: 1, ..CLIENTS }, &crypto_frame(0, &hello[..100]));
    let zero_rtt = b"\xd0\0\0\0\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\0\x05xxxxx";
    let datagram = [&first, &zero_rtt[..], &second, b"\0\0\0"].concat();
    let mut reader = Reader::new(1 << 20);
    assert_eq!(reader.client(&datagram), DONE);
    assert_eq!(reader.values(), ["1", "example.com"]);
    let handshake = b"\xe0\0\0\0\x01\0\x04scid\x05xxxxx";
    let server = seal(&SERVERS, &crypto_frame(0, &server_hello()));
    assert_eq!(reader.server(&[&server, &handshake[..], b"\x41short"].concat()), DONE);
    assert_eq!((reader.values(), reader.messages), (vec!["1".to_owned()], 2));
}

#[test]
fn later_packets_use_the_first_identifier() {
    let hello = client_hello();
    let mut reader = Reader::new(1 << 20);
    assert_eq!(reader.client(&seal(&CLIENTS, &crypto_frame(0, &hello[..50]))), DONE);
    assert_eq!(reader.server(&seal(&SERVERS, b"\x02\0\0\0\0")), DONE);
    let chosen = Plain { destination: b"chosen by the server", number: 1, ..CLIENTS };
    assert_eq!(reader.client(&seal(&chosen, &crypto_frame(50, &hello[50..]))), DONE);
    assert_eq!(reader.values(), ["1", "example.com"]);
    assert_eq!(reader.client(&seal(&chosen, b"\x02\0\0\0\0")), DONE);
    assert_eq!(reader.dropped(true), [0, 0]);
}

#[test]
fn a_retry_changes_the_keys() {
    let frame = crypto_frame(0, &client_hello());
    let retry = [&b"\xf0\0\0\0\x01\x04scid\x07another"[..], b"token", &[9; 16]].concat();
    let again = Plain { first: b"another", destination: b"another", token: b"token", ..CLIENTS };
    let mut reader = Reader::new(1 << 20);
    assert_eq!((reader.client(&seal(&CLIENTS, &frame)), reader.server(&retry)), (DONE, DONE));
    assert_eq!(reader.values(), ["1", "example.com", "1"]);
    assert_eq!(reader.client(&seal(&again, &frame)), DONE);
    assert!(reader.values().is_empty());
    let answer = Plain { first: b"another", ..SERVERS };
    assert_eq!(reader.server(&seal(&answer, &crypto_frame(0, &server_hello()))), DONE);
    assert_eq!(reader.values(), ["1"]);
    assert_eq!((reader.messages, reader.dropped(true)), (3, [0, 0]));
}

#[test]
fn a_second_client_hello_is_read_if_the_server_asks_for_it() {
    let mut asks = server_hello();
    asks[6..38].copy_from_slice(RETRY_REQUEST);
    let (first, second) = (named("a.example", 0), named("b.example", 10));
    let mut reader = Reader::new(1 << 20);
    let both = [crypto_frame(0, &first), crypto_frame(first.len(), &second)].concat();
    assert_eq!(reader.client(&seal(&CLIENTS, &both)), DONE);
    assert_eq!(reader.values(), ["1", "a.example"]);
    assert_eq!(reader.server(&seal(&SERVERS, &crypto_frame(0, &asks))), DONE);
    let later = Plain { number: 1, destination: b"chosen", ..CLIENTS };
    assert_eq!(reader.client(&seal(&later, &crypto_frame(first.len(), &second))), DONE);
    assert_eq!(reader.values(), ["1", "1", "b.example"]);
    let frame = crypto_frame(asks.len(), &server_hello());
    assert_eq!(reader.server(&seal(&Plain { number: 1, ..SERVERS }, &frame)), DONE);
    assert_eq!((reader.messages, reader.dropped(true)), (4, [0, 0]));
}

#[test]
fn versions_can_change() {
    let frame = crypto_frame(0, &client_hello());
    // After Version Negotiation, the client starts again; RFC 9368, section 2.1.
    let list =
        b"\x8a\0\0\0\0\x04scid\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\0\0\0\x01\x0a\x1a\x2a\x3a";
    let mut reader = Reader::new(1 << 20);
    let draft = Plain { version: DRAFT_29, ..CLIENTS };
    assert_eq!((reader.client(&seal(&draft, &frame)), reader.server(list)), (DONE, DONE));
    assert_eq!(reader.values(), ["draft-29", "example.com", "negotiation"]);
    assert_eq!(reader.client(&seal(&CLIENTS, &frame)), DONE);
    assert_eq!(reader.values(), ["1", "example.com"]);
    // A server may change to a compatible version with the same identifier; RFC 9369, section 4.1.
    let server = Plain { version: TWO, ..SERVERS };
    assert_eq!(reader.server(&seal(&server, &crypto_frame(0, &server_hello()))), DONE);
    assert_eq!(reader.values(), ["2"]);
    let client = Plain { version: TWO, number: 1, destination: b"chosen", ..CLIENTS };
    assert_eq!(reader.client(&seal(&client, b"\x02\0\0\0\0")), DONE);
    assert_eq!((reader.values().len(), reader.dropped(true)), (0, [0, 0]));
}

#[test]
fn changed_packets_are_malformed_and_change_nothing() {
    let hello = client_hello();
    let first = seal(&CLIENTS, &crypto_frame(0, &hello[..100]));
    let mut reader = Reader::new(1 << 20);
    for at in [3 + first.len() / 2, first.len() - 1] {
        let mut changed = first.clone();
        changed[at] ^= 1;
        assert_eq!(reader.client(&changed), Err(Unread::Malformed));
        assert_eq!(reader.client(&[&changed[..], &changed].concat()), Err(Unread::Malformed));
        assert_eq!((reader.messages, reader.state.connections.memory()), (0, 0));
    }
    assert_eq!(reader.client(&first), DONE);
    let mut second = seal(&Plain { number: 1, ..CLIENTS }, &crypto_frame(100, &hello[100..]));
    *second.last_mut().unwrap() ^= 1;
    assert_eq!(reader.client(&second), Err(Unread::Malformed));
    *second.last_mut().unwrap() ^= 1;
    assert_eq!(reader.client(&second), DONE);
    assert_eq!(reader.values(), ["1", "example.com"]);
    // A length beyond the datagram, by the standard or by the snap length.
    let mut cut = packet(true, 0);
    assert_eq!(Reader::new(1 << 20).client(&first[..100]), Err(Unread::Malformed));
    cut.flags.insert(Flags::TRUNCATED);
    let mut reader = Reader::new(1 << 20);
    assert_eq!(reader.read(&cut, &first[..100]), Err(Unread::Truncated));
    assert_eq!(reader.read(&cut, &first[..8]), Err(Unread::Truncated));
    assert_eq!(reader.values(), ["1"]);
    assert_eq!(reader.client(&first[..5]), Err(Unread::Malformed));
    assert_eq!(reader.client(b"\x80\0\0\0\x01\x08short"), Ok(Progress::Other));
}

#[test]
fn hellos_of_the_wrong_type_are_malformed() {
    let mut reader = Reader::new(1 << 20);
    let wrong = seal(&CLIENTS, &crypto_frame(0, &server_hello()));
    assert_eq!(reader.client(&wrong), Err(Unread::Malformed));
    assert_eq!((reader.client(&wrong), reader.messages), (DONE, 0));
    let mut reader = Reader::new(1 << 20);
    let long = seal(&CLIENTS, &crypto_frame(0, b"\x01\x01\0\0"));
    assert_eq!((reader.client(&long), reader.client(&long)), (Err(Unread::TooMuch), DONE));
    let far = seal(&CLIENTS, &crypto_frame(16 * 1024, b"\x01"));
    assert_eq!(Reader::new(1 << 20).client(&far), Err(Unread::TooMuch));
    let unknown = seal(&CLIENTS, b"\x30");
    assert_eq!(Reader::new(1 << 20).client(&unknown), Err(Unread::Malformed));
}

#[test]
fn a_connection_without_its_beginning_has_a_version() {
    let server = seal(&SERVERS, &crypto_frame(0, &server_hello()));
    let mut reader = Reader::new(1 << 20);
    assert_eq!((reader.server(&server), reader.server(&server)), (DONE, DONE));
    assert_eq!((reader.values(), reader.messages), (vec!["1".to_owned()], 1));
    let later = Plain { destination: b"chosen by", ..CLIENTS };
    assert_eq!(reader.client(&seal(&later, b"\x02\0\0\0\0")), DONE);
    // A packet that arrives late begins the connection.
    assert_eq!(reader.client(&seal(&CLIENTS, &crypto_frame(0, &client_hello()))), DONE);
    assert_eq!(reader.server(&server), DONE);
    assert_eq!(reader.values(), ["1", "example.com", "1"]);
    let mut reader = Reader::new(1 << 20);
    let handshake = b"\xe0\0\0\0\x01\0\x04scid\x05xxxxx";
    assert_eq!((reader.server(handshake), reader.server(handshake)), (DONE, DONE));
    assert_eq!(reader.values(), ["1"]);
}

#[test]
fn googles_versions_are_read() {
    let chlo = b"CHLO\x02\0\0\0PAD\0\x02\0\0\0SNI\0\x0d\0\0\0--example.org";
    let frame = [&b"\x08\0"[..], &[chlo.len() as u8], chlo].concat();
    let mut reader = Reader::new(1 << 20);
    let client = Plain { version: 0x5130_3530, ..CLIENTS };
    assert_eq!(reader.client(&seal(&client, &frame)), DONE);
    assert_eq!(
        reader.server(&seal(&Plain { from_client: false, ..client }, b"\x08\0\x03REJ")),
        DONE
    );
    assert_eq!((reader.values(), reader.messages), (vec!["Q050".into(), "example.org".into()], 1));
    let mut reader = Reader::new(1 << 20);
    let old = b"\xc3Q046\x50\xd1\xa3\xab\xac\xf6\x1c\x6c\xd1\0\0\0\x01 and the rest";
    assert_eq!((reader.client(old), reader.client(old)), (DONE, DONE));
    assert_eq!((reader.values(), reader.messages), (vec!["Q046".to_owned()], 1));
}

#[test]
fn connections_end_by_time() {
    let hello = client_hello();
    let part = seal(&CLIENTS, &crypto_frame(0, &hello[..100]));
    let whole = seal(&CLIENTS, &crypto_frame(0, &hello));
    let mut reader = Reader::new(1 << 20);
    reader.read(&packet(true, 0), &part).unwrap();
    reader.read(&packet(true, 10 * SECOND_NS), &part).unwrap();
    assert_eq!(reader.dropped(false), [0, 0]);
    reader.read(&packet(true, 10 * SECOND_NS + 1), &whole).unwrap();
    assert_eq!((reader.messages, reader.dropped(false)), (1, [0, 1]));
    reader.read(&packet(true, 20 * SECOND_NS + 1), &whole).unwrap();
    assert_eq!(reader.messages, 1);
    reader.read(&packet(true, 20 * SECOND_NS + 2), &whole).unwrap();
    assert_eq!((reader.messages, reader.dropped(false)), (2, [0, 0]));
    reader.read(&packet(true, 40 * SECOND_NS), &part).unwrap();
    assert_eq!((reader.dropped(true), reader.dropped(true)), ([0, 1], [0, 0]));
    // A connection that takes the ports of another ends it.
    let other = Plain { first: b"another first", destination: b"another first", ..CLIENTS };
    let mut reader = Reader::new(1 << 20);
    assert_eq!(
        (reader.client(&part), reader.client(&seal(&other, &crypto_frame(0, &hello)))),
        (DONE, DONE)
    );
    assert_eq!((reader.messages, reader.dropped(true)), (1, [0, 1]));
}

#[test]
fn a_flood_takes_bounded_memory_and_is_counted() {
    const MEMORY: usize = 100_000;
    let mut reader = Reader::new(MEMORY);
    let (mut changed, mut most) = (0, 0);
    for number in 0..2_000_u32 {
        let first = [&number.to_be_bytes()[..], b"flood"].concat();
        let plain = Plain { first: &first, destination: &first, ..CLIENTS };
        let mut datagram = seal(&plain, &crypto_frame(3_000, b"a"));
        let mut record = packet(true, u64::from(number));
        record.src_port -= (number % 5_000) as u16;
        if number % 4 == 0 {
            *datagram.last_mut().unwrap() ^= 1;
            changed += u64::from(reader.read(&record, &datagram) == Err(Unread::Malformed));
        } else {
            assert_eq!(reader.read(&record, &datagram), DONE);
        }
        most = most.max(reader.state.connections.memory());
        assert!(most <= MEMORY, "{most}");
    }
    let [no_room, incomplete] = reader.dropped(true);
    assert_eq!((changed, no_room + incomplete), (500, 1_500));
    assert!(no_room > 1_400 && incomplete > 10 && most > MEMORY / 2);
}

#[test]
fn the_same_flow_in_two_tunnels_is_read_twice() {
    let mut reader = Reader::new(1 << 20);
    let inner = |from_client: bool, path: u16| {
        let mut record = PacketRecord { path, ..packet(from_client, 0) };
        record.flags.insert(Flags::INNER);
        record
    };
    let client = seal(&CLIENTS, &crypto_frame(0, &client_hello()));
    let server = seal(&SERVERS, &crypto_frame(0, &server_hello()));
    for _ in 0..2 {
        for (record, bytes) in [
            (inner(true, 1), &client),
            (inner(true, 2), &client),
            (inner(false, 3), &server),
            (inner(false, 4), &server),
        ] {
            assert_eq!(reader.read(&record, bytes), DONE);
        }
        assert_eq!(reader.messages, 4);
    }
    for path in 5..20 {
        let expected = if path < 9 { DONE } else { Err(Unread::TooMuch) };
        assert_eq!(reader.read(&inner(true, path), &client), expected, "{path}");
    }
}

proptest! {
    #[test]
    fn any_script_can_be_read(script in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::fuzz_quic(&script);
    }

    #[test]
    fn no_bytes_make_it_panic(
        datagrams in prop::collection::vec((any::<bool>(), 0_usize..8, prop::collection::vec(any::<u8>(), 0..200)), 1..8),
    ) {
        let mut reader = Reader::new(20_000);
        for (from_client, version, bytes) in datagrams {
            let number = [0, 1, 0x6b33_43cf, 0xff00_001d, 0xface_b002, 0x5130_3436, 0x5130_3530, 0x5430_3531][version];
            let record = packet(from_client, 0);
            let _ = reader.read(&record, &bytes);
            let mut known = bytes.clone();
            known.splice(..known.len().min(5), [&[0xc0 | known.first().unwrap_or(&0)][..], &u32::to_be_bytes(number)].concat());
            let _ = reader.read(&record, &known);
            if let Some(sealed) = (Plain { version: number, from_client, payload: &bytes, ..CLIENTS }).seal() {
                let _ = reader.read(&record, &sealed);
            }
        }
        reader.dropped(true);
    }
}
