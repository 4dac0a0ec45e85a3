//! WebSocket (RFC 6455): a binary message for each frame, over the byte stream of a TCP connection.
//!
//! ```text
//!  received bytes ─▶ Pipe ─▶ tungstenite ─▶ messages
//!  frames ─▶ tungstenite ─▶ Pipe ─▶ bytes to send       also: the handshake, pongs
//! ```
//!
//! Invariants: nothing here reads or writes a socket. Memory is bounded, whatever is received.

use std::io::{self, ErrorKind, Read, Write};

use tungstenite::error::{CapacityError, Error};
use tungstenite::handshake::server::{NoCallback, ServerHandshake};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Message};

use crate::faces::counters::Lost;
use crate::packets::FRAME_MAX;

/// Number of bytes in the pipe above which it accepts no more. The largest frame fits.
const PIPE_MAX: usize = 4 * FRAME_MAX;

/// Number of bytes that tungstenite reads at a time. Its buffer grows with the messages.
const READ: usize = 4096;

type Handshake = MidHandshake<ServerHandshake<Pipe, NoCallback>>;

/// The server's end of a WebSocket connection.
#[derive(Debug)]
pub(crate) struct WebSocket(State);

#[derive(Debug)]
enum State {
    Handshake(Handshake),
    Open(tungstenite::WebSocket<Pipe>),
    Ended(Pipe),
}

/// The bytes between the socket and the protocol.
#[derive(Debug, Default)]
struct Pipe {
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
}

impl WebSocket {
    /// Waits for the client's handshake. It is an error only in a build without WebSocket.
    pub(crate) fn new() -> io::Result<Self> {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(0)
            .max_write_buffer_size(2 * FRAME_MAX)
            .max_message_size(Some(FRAME_MAX))
            .max_frame_size(Some(FRAME_MAX));
        let pipe = Pipe::default();
        Ok(Self(State::Handshake(ServerHandshake::start(pipe, NoCallback, Some(config)))))
    }

    /// Whether the handshake is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self.0, State::Handshake(_))
    }

    /// Handles received bytes: appends messages and losses to `messages`. Returns whether the
    /// connection ends.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        messages: &mut Vec<Result<Bytes, Lost>>,
    ) -> bool {
        self.pipe().refill(bytes);
        if self.is_handshaking() {
            self.shake();
        }
        loop {
            let socket = match &mut self.0 {
                State::Handshake(_) => return false,
                State::Open(socket) => socket,
                State::Ended(_) => {
                    messages.push(Err(Lost::Malformed));
                    return true;
                }
            };
            match socket.read() {
                Ok(Message::Binary(message)) => messages.push(Ok(message)),
                Ok(Message::Text(_)) => messages.push(Err(Lost::Malformed)),
                // The reply is sent with the next call of `read`.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_)) => {
                }
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return true,
                Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => {
                    messages.push(Err(Lost::TooLong));
                    return true;
                }
                Err(_) => {
                    messages.push(Err(Lost::Malformed));
                    return true;
                }
            }
        }
    }

    /// Sends a frame as a binary message.
    pub(crate) fn send(&mut self, frame: Vec<u8>) -> Result<(), Lost> {
        let State::Open(socket) = &mut self.0 else { return Err(Lost::Disconnected) };
        match socket.send(Message::binary(frame)) {
            Ok(()) => Ok(()),
            Err(Error::WriteBufferFull(_)) => Err(Lost::Congested),
            // The message is buffered.
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Lost::Disconnected),
        }
    }

    /// Appends the bytes that must be sent to `out`.
    pub(crate) fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut std::mem::take(&mut self.pipe().output));
        if let State::Open(socket) = &mut self.0 {
            // Buffered messages go on into the pipe, which has room.
            let _ = socket.flush();
            out.append(&mut std::mem::take(&mut self.pipe().output));
        }
    }

    /// Continues the handshake.
    fn shake(&mut self) {
        let ended = State::Ended(Pipe::default());
        let State::Handshake(handshake) = std::mem::replace(&mut self.0, ended) else { return };
        self.0 = match handshake.handshake() {
            Ok(socket) => State::Open(socket),
            Err(HandshakeError::Interrupted(handshake)) => State::Handshake(handshake),
            Err(HandshakeError::Failure(_)) => return,
        };
    }

    fn pipe(&mut self) -> &mut Pipe {
        match &mut self.0 {
            State::Handshake(handshake) => handshake.get_mut().get_mut(),
            State::Open(socket) => socket.get_mut(),
            State::Ended(pipe) => pipe,
        }
    }
}

impl Pipe {
    /// Adds received bytes; those that were read are removed.
    fn refill(&mut self, bytes: &[u8]) {
        self.input.drain(..self.read);
        self.read = 0;
        self.input.extend_from_slice(bytes);
    }
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let unread = &self.input[self.read..];
        if unread.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = unread.len().min(out.len());
        out[..len].copy_from_slice(&unread[..len]);
        self.read += len;
        if self.read == self.input.len() {
            (self.input, self.read) = (Vec::new(), 0);
        }
        Ok(len)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.output.len() > PIPE_MAX {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
