//! What a routing daemon needs of the management: link headers with the receiving face, faces to
//! neighbours, and prefixes to announce.

use std::net::{Ipv6Addr, UdpSocket};
use std::time::Duration;

use ringtap_ndn::packets::management::{ControlParameters, LOCAL_FIELDS, ORIGIN_CLIENT};
use ringtap_ndn::packets::{Headers, Interest, NewData, NewInterest};

use crate::relay::client::Client;
use crate::relay::support::{Ringtap, plans, until};
use crate::support::name;

const TIMEOUT: Duration = Duration::from_secs(10);

fn flags(face: Option<u64>, flags: Option<u64>, mask: Option<u64>) -> ControlParameters {
    ControlParameters { face, flags, mask, ..ControlParameters::default() }
}

/// Creates the face to a neighbour; returns the status code and the number of the face.
fn create(program: &mut Client, neighbour: &Client) -> (u64, u64) {
    let uri = Some(format!("udp4://{}", neighbour.address()));
    let parameters = ControlParameters { uri, ..ControlParameters::default() };
    let response = program.command("faces", "create", &parameters);
    (response.code, response.parameters.unwrap().face.unwrap())
}

#[test]
fn a_program_that_requests_it_receives_the_number_of_the_receiving_face() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Ringtap::with(folder.path(), plan);
        let mut producer = Client::unix(&relay.socket);
        producer.register("/p");
        let mut consumer = Client::udp(relay.udp);
        let mut received = |producer: &mut Client, nonce: u32| {
            let (name, mut wire) = (name(&format!("/p/{nonce}")), Vec::new());
            NewInterest::new(name.as_name(), nonce).write(&mut wire);
            consumer.send(&Headers::NONE, &wire);
            producer.receive(TIMEOUT).expect("an Interest").0.incoming_face
        };
        assert_eq!(received(&mut producer, 1), None);
        let on = flags(None, Some(LOCAL_FIELDS), Some(LOCAL_FIELDS));
        let response = producer.command("faces", "update", &on);
        assert_eq!((response.code, response.parameters.unwrap().flags), (200, Some(1)));
        let face = received(&mut producer, 2).expect("a face");
        // The number is that of the consumer's face, which exists already.
        assert_eq!(create(&mut producer, &consumer), (409, face));
        let off = flags(None, Some(0), Some(LOCAL_FIELDS));
        let response = producer.command("faces", "update", &off);
        assert_eq!((response.code, response.parameters.unwrap().flags), (200, Some(0)));
        let mut wire = Vec::new();
        NewInterest::new(name("/p/3").as_name(), 3).write(&mut wire);
        consumer.send(&Headers::NONE, &wire);
        assert_eq!(producer.receive(TIMEOUT).unwrap().0.incoming_face, None);
        relay.end();
    }
}

#[test]
fn updates_that_a_face_cannot_have_are_refused() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Ringtap::with(folder.path(), plan);
        let mut program = Client::unix(&relay.socket);
        let neighbour = Client::udp(relay.udp);
        let (code, face) = create(&mut program, &neighbour);
        assert_eq!(code, 200);
        let on = Some(LOCAL_FIELDS);
        for (parameters, code) in [
            (flags(None, on, None), 400),
            (flags(None, None, on), 400),
            (flags(Some(65_000), on, on), 404),
            (flags(Some(u64::MAX), on, on), 410),
            // Neighbours do not receive face numbers.
            (flags(Some(face), on, on), 409),
            (flags(Some(face), Some(0), on), 200),
            // Reliable links are not supported.
            (flags(Some(face), Some(2), Some(2)), 409),
            (ControlParameters { mtu: Some(1), ..flags(Some(face), None, None) }, 409),
            (flags(Some(face), None, None), 200),
        ] {
            let response = program.command("faces", "update", &parameters);
            assert_eq!(response.code, code, "{parameters:?}: {response:?}");
        }
        relay.end();
    }
}

#[test]
fn a_face_that_cannot_be_created_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Ringtap::with(folder.path(), plans().remove(0));
    let mut program = Client::unix(&relay.socket);
    for (uri, code, words) in [
        ("udp4://127.0.0.1:7", 200, "OK"),
        ("udp4://localhost:7", 400, "use a numeric address"),
        ("udp4://224.0.23.170:56363", 504, "no interface has the multicast group"),
    ] {
        let parameters =
            ControlParameters { uri: Some(uri.into()), ..ControlParameters::default() };
        let response = program.command("faces", "create", &parameters);
        assert_eq!(response.code, code, "{response:?}");
        assert!(response.text.contains(words), "{response:?}");
    }
    relay.end();
}

#[test]
fn a_socket_that_was_opened_for_a_face_is_closed_with_it() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Ringtap::with(folder.path(), plan);
        let mut program = Client::unix(&relay.socket);
        for round in 0..3 {
            // The relay has no socket for IPv6.
            let Ok(neighbour) = UdpSocket::bind("[::1]:0") else {
                return eprintln!("SKIPPED: this system has no IPv6");
            };
            neighbour.set_read_timeout(Some(TIMEOUT)).unwrap();
            let uri = Some(format!("udp6://{}", neighbour.local_addr().unwrap()));
            let parameters = ControlParameters { uri, ..ControlParameters::default() };
            let response = program.command("faces", "create", &parameters);
            let face = response.parameters.unwrap().face;
            let prefix = Some(name(&format!("/{round}")));
            let parameters =
                ControlParameters { name: prefix, face, ..ControlParameters::default() };
            assert_eq!(program.command("rib", "register", &parameters).code, 200);
            // Every worker sends some of these.
            let mut from = None;
            for number in 0..20 {
                let (name, mut wire) = (name(&format!("/{round}/{number}")), Vec::new());
                NewInterest::new(name.as_name(), number).write(&mut wire);
                program.send(&Headers::NONE, &wire);
            }
            for _ in 0..20 {
                from = Some(neighbour.recv_from(&mut [0; 2_000]).unwrap().1);
            }
            let parameters = ControlParameters { face, ..ControlParameters::default() };
            assert_eq!(program.command("faces", "destroy", &parameters).code, 200);
            let port = from.unwrap().port();
            until("the socket is closed", || {
                let bound = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port));
                bound.map(drop).map_err(|error| error.to_string())
            });
        }
        relay.end();
    }
}

/// The next command at a routing daemon: its verb and parameters. Answers it.
fn next_command(daemon: &mut Client) -> (String, ControlParameters) {
    let (headers, wire) = daemon.receive(TIMEOUT).expect("a command");
    let interest = Interest::read(&wire).unwrap();
    let components: Vec<_> = interest.name.components().collect();
    let text = |at: usize| String::from_utf8(components[at].value.to_vec()).unwrap();
    assert_eq!((components.len(), text(1), text(2)), (6, "nlsr".into(), "rib".into()));
    let mut data = Vec::new();
    NewData { name: interest.name, freshness_ms: None, content: b"" }.write(&mut data);
    daemon.send(&Headers { token: headers.token, ..Headers::NONE }, &data);
    (text(3), ControlParameters::read(components[4].value).unwrap())
}

#[test]
fn prefixes_with_the_origin_client_are_announced_to_the_routing_daemon() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Ringtap::with(folder.path(), plan);
        let mut server = Client::unix(&relay.socket);
        let expose = |prefix: &str, cost| ControlParameters {
            name: Some(name(prefix)),
            origin: Some(ORIGIN_CLIENT),
            cost: Some(cost),
            ..ControlParameters::default()
        };
        server.register("/private");
        server.command("rib", "register", &expose("/before", 3));
        let mut daemon = Client::unix(&relay.socket);
        daemon.register("/localhost/nlsr");
        let mut next = || {
            let (verb, parameters) = next_command(&mut daemon);
            (verb, parameters.name.unwrap().to_string(), parameters.cost)
        };
        assert_eq!(next(), ("register".into(), "/before".into(), Some(3)));
        server.command("rib", "register", &expose("/after", 4));
        assert_eq!(next(), ("register".into(), "/after".into(), Some(4)));
        server.command("rib", "unregister", &expose("/before", 0));
        assert_eq!(next(), ("unregister".into(), "/before".into(), None));
        // The routes end with the program.
        drop(server);
        assert_eq!(next(), ("unregister".into(), "/after".into(), None));
        // The answers are counted, and are not unsolicited.
        daemon.register("/last");
        let report = relay.end();
        assert_eq!((report.announced(), report.dropped()), ([4, 4], vec![]), "{report:?}");
    }
}

#[test]
fn prefixes_are_announced_to_a_local_program_only() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Ringtap::with(folder.path(), plans().remove(0));
    let mut program = Client::unix(&relay.socket);
    let mut neighbour = Client::udp(relay.udp);
    let (_, face) = create(&mut program, &neighbour);
    let at_neighbour = ControlParameters {
        name: Some(name("/localhost/nlsr")),
        face: Some(face),
        ..ControlParameters::default()
    };
    assert_eq!(program.command("rib", "register", &at_neighbour).code, 200);
    let mut daemon = Client::unix(&relay.socket);
    daemon.register("/localhost/nlsr");
    let exposed = ControlParameters {
        name: Some(name("/exposed")),
        origin: Some(ORIGIN_CLIENT),
        ..ControlParameters::default()
    };
    program.command("rib", "register", &exposed);
    assert_eq!(next_command(&mut daemon).1.name, exposed.name);
    assert!(neighbour.receive(Duration::ZERO).is_none());
    relay.end();
}
