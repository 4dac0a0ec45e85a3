//! A link between two neighbours over UDP that a test can cut: a thread passes datagrams on.
//!
//! ```text
//!  neighbour 0 ─▶ near[0] ─ thread ─ near[1] ─▶ neighbour 1
//! ```
//!
//! To each neighbour, its end of the link has the address of the other neighbour.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A link that passes datagrams until it is cut.
pub(crate) struct Link {
    /// For each neighbour the address at which it reaches the other one.
    pub(crate) ends: [SocketAddr; 2],
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_cut: AtomicBool,
    is_over: AtomicBool,
    passed: AtomicU64,
    lost: AtomicU64,
}

impl Link {
    /// A link between two addresses.
    pub(crate) fn between(neighbours: [SocketAddr; 2]) -> Self {
        let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ends = [0, 1].map(|at: usize| sockets[at].local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let threads = [0, 1].map(|at: usize| {
            let from = sockets[at].try_clone().unwrap();
            let through = sockets[1 - at].try_clone().unwrap();
            let shared = Arc::clone(&shared);
            let pass = move || shared.pass(&from, &through, neighbours[1 - at]);
            std::thread::Builder::new().spawn(pass).unwrap()
        });
        Self { ends, shared, threads: threads.into() }
    }

    /// Loses all datagrams from now on.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
    }

    /// Numbers of datagrams that were passed on, and that were lost.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [&self.shared.passed, &self.shared.lost].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Shared {
    /// Passes datagrams that arrive at the socket `from` on to `to`, through the other socket.
    fn pass(&self, from: &UdpSocket, through: &UdpSocket, to: SocketAddr) {
        from.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut bytes = vec![0; 65_536];
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(len) = from.recv(&mut bytes) else { continue };
            let is_cut = self.is_cut.load(Ordering::Relaxed);
            let is_sent = !is_cut && through.send_to(&bytes[..len], to).is_ok();
            let count = if is_sent { &self.passed } else { &self.lost };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
