//! Faces with a handler that records packets, and packets to send.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use ringtap_ndn::faces::{Faces, Handler, Intake, ReceivedPacket, Remote, Settings, close_idle};
use ringtap_ndn::packets::{Headers, Interest, NameBuf, NewData, NewInterest, PitToken};

/// A handler that records the events of faces.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) up: Vec<u32>,
    pub(crate) down: Vec<u32>,
    pub(crate) packets: Vec<(u32, Headers, Vec<u8>)>,
    /// Numbers of packets that were delivered together.
    pub(crate) batches: Vec<usize>,
    /// Connections that were established or ended.
    pub(crate) links: Vec<(u32, bool)>,
    /// Whether received packets are sent back.
    pub(crate) echo: bool,
}

impl Handler for Recorder {
    fn up(&mut self, _: &mut Faces, face: u32) {
        self.up.push(face);
    }

    fn down(&mut self, faces: &mut Faces, face: u32) {
        assert!(faces.get(face).is_none());
        self.down.push(face);
    }

    fn link_changed(&mut self, faces: &mut Faces, face: u32, is_up: bool) {
        assert!(faces.get(face).is_some());
        self.links.push((face, is_up));
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        self.batches.push(packets.len());
        for ReceivedPacket { face, headers, packet } in packets {
            self.packets.push((*face, *headers, packet.to_vec()));
            if self.echo {
                faces.send(*face, headers, packet);
            }
        }
    }
}

/// Closes the face of the first packets, as a program that destroys its own face does.
#[derive(Default)]
pub(crate) struct Closing {
    pub(crate) delivered: usize,
}

impl Handler for Closing {
    fn up(&mut self, _: &mut Faces, _: u32) {}
    fn down(&mut self, _: &mut Faces, _: u32) {}
    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        self.delivered += packets.len();
        faces.close(packets[0].face);
    }
}

/// Faces with a recording handler, and a clock that the test sets.
pub(crate) struct Node {
    pub(crate) faces: Faces,
    pub(crate) intake: Intake,
    pub(crate) recorder: Recorder,
    pub(crate) now_ns: u64,
}

impl Node {
    pub(crate) fn new(settings: Settings) -> Self {
        let faces = Faces::open(settings).unwrap();
        Self { faces, intake: Intake::new(), recorder: Recorder::default(), now_ns: 1 }
    }

    /// A node that listens on an unused UDP port, and its address.
    pub(crate) fn udp(settings: Settings) -> (Self, SocketAddr) {
        let node = Self::new(Settings { udp: vec!["127.0.0.1:0".parse().unwrap()], ..settings });
        let at = node.faces.listening().next().unwrap();
        let Ok(Remote::Udp(at)) = at.parse() else { panic!("{at}") };
        (node, at)
    }

    /// Receives until `enough` returns true; panics after a time limit.
    pub(crate) fn until(&mut self, enough: impl Fn(&Self) -> bool) {
        for _ in 0..300 {
            self.intake.wait(&self.faces, Duration::from_millis(10)).unwrap();
            self.intake.receive(&mut self.faces, self.now_ns, &mut self.recorder);
            if enough(self) {
                return self.check_counters();
            }
        }
        panic!(
            "{} packets, {} up, {} down",
            self.recorder.packets.len(),
            self.recorder.up.len(),
            self.recorder.down.len()
        );
    }

    /// Advances the clock and does what is due every second.
    pub(crate) fn after(&mut self, time: Duration) {
        self.now_ns += time.as_nanos() as u64;
        close_idle(&mut self.faces, self.now_ns, &mut self.recorder);
    }

    /// Checks that the counters cover every received frame.
    pub(crate) fn check_counters(&self) {
        let total = self.faces.total();
        assert_eq!(total.residual(), 0, "{total:?}");
    }
}

pub(crate) fn name(text: &str) -> NameBuf {
    text.parse().unwrap()
}

pub(crate) fn interest(text: &str, nonce: u32) -> Vec<u8> {
    let mut wire = Vec::new();
    NewInterest::new(name(text).as_name(), nonce).write(&mut wire);
    assert!(Interest::read(&wire).is_ok());
    wire
}

pub(crate) fn data(text: &str, len: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    let content: Vec<u8> = (0..len).map(|at| (at * 7 + at / 251) as u8).collect();
    let name = name(text);
    NewData { name: name.as_name(), freshness_ms: Some(1), content: &content }.write(&mut wire);
    wire
}

pub(crate) fn with_token(token: &[u8]) -> Headers {
    Headers { token: PitToken::new(token).unwrap(), ..Headers::default() }
}

/// A UDP socket that acts as a neighbour.
pub(crate) fn neighbour() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    socket
}
