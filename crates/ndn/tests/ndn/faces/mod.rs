//! Faces over loopback and over a veth pair, as their neighbours see them.

mod ethernet;
mod stream;
mod support;
mod udp;
