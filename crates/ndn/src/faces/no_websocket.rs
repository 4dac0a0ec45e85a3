//! Stub for `websocket.rs` in builds without the feature `websocket`.

use std::io;

use crate::faces::counters::Lost;

/// A WebSocket connection; there is none.
#[derive(Debug)]
pub(crate) enum WebSocket {}

impl WebSocket {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::other("WebSocket is not available: build with the feature websocket"))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: &[u8], _: &mut Vec<Result<Vec<u8>, Lost>>) -> bool {
        match *self {}
    }

    pub(crate) fn send(&mut self, _: Vec<u8>) -> Result<(), Lost> {
        match *self {}
    }

    pub(crate) fn take_output(&mut self, _: &mut Vec<u8>) {
        match *self {}
    }
}
