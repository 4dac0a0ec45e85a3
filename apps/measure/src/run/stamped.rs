//! A feed that stamps packets with the time at which they were handed out: the delay of a packet of
//! a file is that within the program, from its decoding.

use ringtap_base::now_ns;
use ringtap_stage::{Burst, Fed, Feed};
use ringtap_wire::PacketRecord;

use ringtap_engine::{Closed, PacketSource};

pub(super) struct Stamped<F>(pub(super) F);

impl<F: PacketSource> Feed for Stamped<F> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        let before = burst.len();
        let fed = self.0.next(burst);
        if burst.len() > before {
            let now_ns = now_ns();
            burst[before..].iter_mut().for_each(|packet| packet.ts_ns = now_ns);
        }
        fed
    }
}

impl<F: PacketSource> PacketSource for Stamped<F> {
    fn close(feeds: Vec<Self>) -> Closed {
        F::close(feeds.into_iter().map(|feed| feed.0).collect())
    }
}
