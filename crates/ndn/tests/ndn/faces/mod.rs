//! Tests of faces over loopback and over a veth pair, with sockets as neighbours.

mod ethernet;
mod multicast;
mod queues;
mod stream;
mod support;
mod tcp;
mod udp;
#[cfg(feature = "websocket")]
mod websocket;
