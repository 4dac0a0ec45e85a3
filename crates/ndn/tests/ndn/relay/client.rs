//! A consumer or producer at a relay, over its Unix socket or over UDP.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ringtap_ndn::packets::management::{
    Command, ControlParameters, ControlResponse, GeneralStatus, RibEntry, command, last_segment,
};
use ringtap_ndn::packets::{Data, Element, Headers, LpPacket, NameBuf, NewInterest, write_lp};

/// Longest wait for an answer of the management.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a relay. Closing it ends the face of a program.
pub(crate) struct Client {
    socket: Socket,
    /// Received bytes of the stream that are not read yet.
    unread: Vec<u8>,
    /// Packets that arrived before an answer of the management.
    aside: VecDeque<(Headers, Vec<u8>)>,
    /// Number of commands.
    commands: u32,
}

enum Socket {
    Unix(UnixStream),
    Udp(UdpSocket),
}

impl Client {
    pub(crate) fn unix(path: &Path) -> Self {
        Self::of(Socket::Unix(UnixStream::connect(path).unwrap()))
    }

    pub(crate) fn udp(to: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to).unwrap();
        Self::of(Socket::Udp(socket))
    }

    fn of(socket: Socket) -> Self {
        Self { socket, unread: Vec::new(), aside: VecDeque::new(), commands: 0 }
    }

    /// The address of a UDP client.
    pub(crate) fn address(&self) -> SocketAddr {
        match &self.socket {
            Socket::Udp(socket) => socket.local_addr().unwrap(),
            Socket::Unix(_) => panic!("a program has no address"),
        }
    }

    /// Sends a packet with link headers.
    pub(crate) fn send(&mut self, headers: &Headers, packet: &[u8]) {
        let mut wire = Vec::new();
        write_lp(headers, packet, &mut wire);
        match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(&wire).unwrap(),
            Socket::Udp(socket) => assert_eq!(socket.send(&wire).unwrap(), wire.len()),
        }
    }

    /// The next packet with its link headers; `None` if none arrives within `wait`. Does not wait
    /// if it is 0.
    pub(crate) fn receive(&mut self, wait: Duration) -> Option<(Headers, Vec<u8>)> {
        match self.aside.pop_front() {
            Some(packet) => Some(packet),
            None => self.read(wait),
        }
    }

    fn read(&mut self, wait: Duration) -> Option<(Headers, Vec<u8>)> {
        let is_waiting = !wait.is_zero();
        self.set_blocking(is_waiting);
        let packet = self.read_packet(is_waiting.then_some(wait));
        self.set_blocking(true);
        packet
    }

    fn set_blocking(&self, is_blocking: bool) {
        match &self.socket {
            Socket::Unix(stream) => stream.set_nonblocking(!is_blocking).unwrap(),
            Socket::Udp(socket) => socket.set_nonblocking(!is_blocking).unwrap(),
        }
    }

    fn read_packet(&mut self, wait: Option<Duration>) -> Option<(Headers, Vec<u8>)> {
        loop {
            if let Ok((_, rest)) = Element::first(&self.unread) {
                let len = self.unread.len() - rest.len();
                let frame: Vec<u8> = self.unread.drain(..len).collect();
                let packet = LpPacket::read(&frame).unwrap();
                assert_eq!(packet.fragment.count, 1);
                return Some((packet.headers, packet.payload.unwrap().to_vec()));
            }
            let mut bytes = [0; 16_384];
            let received = match &mut self.socket {
                Socket::Unix(stream) => {
                    stream.set_read_timeout(wait).unwrap();
                    stream.read(&mut bytes)
                }
                Socket::Udp(socket) => {
                    socket.set_read_timeout(wait).unwrap();
                    socket.recv(&mut bytes)
                }
            };
            match received {
                Ok(0) => panic!("the relay closed the connection"),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next Data of the management; other packets are kept for [`Client::receive`].
    fn answer(&mut self) -> Vec<u8> {
        loop {
            let (headers, packet) = self.read(TIMEOUT).expect("an answer");
            let is_answer = |data: Data<'_>| data.name.as_bytes().starts_with(Command::PREFIX);
            if Data::read(&packet).is_ok_and(is_answer) {
                return packet;
            }
            self.aside.push_back((headers, packet));
        }
    }

    /// The response to a management command.
    pub(crate) fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> ControlResponse {
        self.commands += 1;
        let mut interest = Vec::new();
        let time_ms = 1_700_000_000_000 + u64::from(self.commands);
        command("localhost", module, verb, parameters, self.commands, time_ms, &mut interest);
        self.send(&Headers::NONE, &interest);
        let data = self.answer();
        ControlResponse::read(Data::read(&data).unwrap().content).unwrap()
    }

    /// The relay's routes.
    pub(crate) fn routes(&mut self) -> Vec<RibEntry> {
        let data = self.dataset("/localhost/nfd/rib/list");
        RibEntry::read_all(Data::read(&data).unwrap().content).unwrap()
    }

    /// The relay's status.
    pub(crate) fn status(&mut self) -> GeneralStatus {
        let data = self.dataset("/localhost/nfd/status/general");
        GeneralStatus::read(Data::read(&data).unwrap().content).unwrap()
    }

    /// The Data of a data set of one segment.
    fn dataset(&mut self, name: &str) -> Vec<u8> {
        self.commands += 1;
        let name: NameBuf = name.parse().unwrap();
        let mut interest = NewInterest::new(name.as_name(), self.commands);
        (interest.can_be_prefix, interest.must_be_fresh) = (true, true);
        let mut wire = Vec::new();
        interest.write(&mut wire);
        self.send(&Headers::NONE, &wire);
        let data = self.answer();
        assert_eq!(last_segment(&data), Some(0));
        data
    }

    /// Registers a prefix for this face.
    pub(crate) fn register(&mut self, prefix: &str) {
        let name = Some(prefix.parse().unwrap());
        let response =
            self.command("rib", "register", &ControlParameters { name, ..Default::default() });
        assert_eq!(response.code, 200, "{response:?}");
    }
}
