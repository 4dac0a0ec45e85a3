//! A connection, made again when it breaks, with pauses that double.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{Delivery, Link, Opened, Trouble, Until, now};
use crate::Reason;

/// A slice of waiting, after which is asked whether to go on.
const SLICE: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) struct TcpLink {
    addresses: Vec<SocketAddr>,
    stream: Option<TcpStream>,
    /// Before the next attempt, and since when there is a connection.
    pause: Duration,
    since: Option<Instant>,
    trouble: Option<io::Error>,
}

impl TcpLink {
    pub(crate) const fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, stream: None, pause: Duration::ZERO, since: None, trouble: None }
    }

    fn connect(&mut self, until: &mut Until) -> Option<TcpStream> {
        for &address in &self.addresses {
            let timeout = CONNECT.min(until.left()).max(Duration::from_millis(1));
            let stream = TcpStream::connect_timeout(&address, timeout).and_then(|stream| {
                stream.set_write_timeout(Some(SLICE))?;
                stream.set_read_timeout(Some(SLICE))?;
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            match stream {
                Ok(stream) => return Some(stream),
                Err(error) => self.trouble = Some(error),
            }
        }
        None
    }
}

/// Whether the collector has closed its side, which no collector does to one it still listens to.
fn is_closed(stream: &mut TcpStream) -> io::Result<bool> {
    stream.set_nonblocking(true)?;
    let read = stream.read(&mut [0; 256]);
    stream.set_nonblocking(false)?;
    match read {
        Ok(octets) => Ok(octets == 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_slice_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Link for TcpLink {
    fn open(&mut self, until: &mut Until) -> Opened {
        if self.stream.is_some() {
            return Opened::Still;
        }
        // One that closes each connection at once is no better than one that is down.
        if self.since.take().is_some_and(|since| since.elapsed() > PAUSE_MAX) {
            self.pause = Duration::ZERO;
        }
        while !until.over() {
            until.sleep(self.pause);
            self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            self.stream = self.connect(until);
            if self.stream.is_some() {
                self.since = Some(now());
                return Opened::Anew;
            }
        }
        Opened::Never(Reason::TooLate)
    }

    fn send(&mut self, message: &[u8], until: &mut Until) -> Result<Delivery, Trouble> {
        // Whatever ends this early, the stream then ends in the middle of a message: it is not used again.
        let Some(mut stream) = self.stream.take() else { return Err(Trouble::Broken) };
        match is_closed(&mut stream) {
            Ok(false) => {}
            Ok(true) => {
                self.trouble = Some(ErrorKind::ConnectionReset.into());
                return Err(Trouble::Broken);
            }
            Err(error) => {
                self.trouble = Some(error);
                return Err(Trouble::Broken);
            }
        }
        let mut rest = message;
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if is_slice_over(&error) => {
                    if until.over() {
                        return Err(Trouble::Lost(Reason::TooLate));
                    }
                }
                Err(error) => {
                    self.trouble = Some(error);
                    return Err(Trouble::Broken);
                }
            }
        }
        self.stream = Some(stream);
        Ok(Delivery::Taken)
    }

    fn close(&mut self, until: &mut Until) -> Delivery {
        if let Some(mut stream) = self.stream.take()
            && stream.shutdown(Shutdown::Write).is_ok()
        {
            // A collector that has read everything closes its side, too. One that does not is not waited for long.
            let mut slices = 5;
            while slices > 0 && !until.over() {
                match stream.read(&mut [0; 256]) {
                    Ok(1..) => {}
                    Err(error) if is_slice_over(&error) => slices -= 1,
                    Ok(0) | Err(_) => break,
                }
            }
        }
        Delivery::Taken
    }

    fn trouble(&self) -> Option<(String, bool)> {
        self.trouble.as_ref().map(|error| (error.to_string(), false))
    }
}
