//! Requests to the metrics of a program.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A request for the metrics.
pub const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A loopback address with a free TCP port.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Sends a request and returns the response; the connection stays open.
pub fn request_on(stream: &mut TcpStream, request: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    let head = String::from_utf8(bytes).unwrap();
    let (_, length) = head.split_once("Content-Length: ").unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; if request.starts_with("HEAD ") { 0 } else { length }];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

/// As [`request_on`], on a new connection.
pub fn request(address: SocketAddr, request: &str) -> String {
    request_on(&mut TcpStream::connect(address).unwrap(), request)
}
