//! The feed of the monitor: frames from capture files, decoded, with marks at packet times.
//!
//! A mark stands before the first packet whose time reaches the next multiple of the tick,
//! wherever bursts begin and end, so its place depends on the packets alone.
//!
//! What a tunnel carries is a packet of its own, right behind the tunnel's. So there may be more packets than a burst has
//! room for, up to twice as many; the rest goes out before more is read.

use std::collections::BTreeMap;

use ringtap_capture::Files;
use ringtap_stage::{Fed, Feed, Mark};
use ringtap_wire::{Decoded, Decoder, NonIp, PacketRecord};

use crate::Watch;

/// See the module.
pub struct PacketFeed<'a> {
    files: Files,
    decoder: Decoder,
    watch: &'a Watch,
    tick_ns: u64,
    /// Packet time at which the next mark is due; `None` before the first packet.
    due_ns: Option<u64>,
    /// Highest packet time so far.
    high_ns: u64,
    ticks: u64,
    mark: Option<Mark>,
    /// Packets behind a mark or a full burst, read but not handed out.
    carry: Vec<PacketRecord>,
    counts: FeedCounts,
}

/// What the feed counted.
#[derive(Clone, Debug, Default)]
pub struct FeedCounts {
    /// Packets handed out, without those within tunnels.
    pub packets: u64,
    /// Packets handed out that others carried.
    pub inner: u64,
    /// Bytes captured of them.
    pub captured_octets: u64,
    /// Packets that are not IP, by reason.
    pub non_ip: BTreeMap<NonIp, u64>,
}

impl<'a> PacketFeed<'a> {
    /// A feed over `files` with a mark every `tick_ns` of packet time.
    pub fn new(files: Files, decoder: Decoder, tick_ns: u64, watch: &'a Watch) -> Self {
        Self {
            files,
            decoder,
            watch,
            tick_ns: tick_ns.max(1),
            due_ns: None,
            high_ns: 0,
            ticks: 0,
            mark: None,
            carry: Vec::with_capacity(2 * ringtap_skeleton::BURST),
            counts: FeedCounts::default(),
        }
    }

    /// The files, for their notices and counts.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// What was counted so far.
    pub fn counts(&self) -> &FeedCounts {
        &self.counts
    }

    /// Fills the burst with decoded packets, and `carry`, which is empty, with what they carried beyond its room; the
    /// highest time in the burst.
    fn read(&mut self, burst: &mut Vec<PacketRecord>) -> u64 {
        let (decoder, counts, carry) = (&mut self.decoder, &mut self.counts, &mut self.carry);
        let most = burst.capacity();
        // With a burst of the usual size there is room, for these and for what a mark cuts off.
        carry.reserve(2 * most);
        let mut high_ns = 0;
        let read = self.files.burst(most - burst.len(), |frame| {
            let full = burst.len() == most;
            let packets = if full { &mut *carry } else { &mut *burst };
            // Decoded where it will stay: a record is not copied.
            packets.push(PacketRecord::EMPTY);
            let Some(record) = packets.last_mut() else { return };
            let decoded =
                decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, record);
            if let Decoded::NonIp(reason) = decoded {
                *counts.non_ip.entry(reason).or_default() += 1;
            }
            if let Some(inner) = decoder.inner(record) {
                counts.inner += 1;
                if burst.len() == most { carry.push(*inner) } else { burst.push(*inner) }
            }
            counts.captured_octets += frame.data.len() as u64;
            if !full {
                high_ns = high_ns.max(frame.ts_ns);
            }
        });
        counts.packets += read as u64;
        self.watch.packets.add(read as u64);
        let bytes = self.files.position().bytes_read;
        self.watch.bytes.add(bytes.saturating_sub(self.watch.bytes.get()));
        high_ns
    }

    /// Cuts the burst before the first packet that has reached the time due. Returns the highest
    /// time of what is left.
    #[cold]
    fn cut(&mut self, burst: &mut Vec<PacketRecord>, due_ns: u64) -> u64 {
        let reached = |packet: &PacketRecord| packet.ts_ns >= due_ns;
        let at = burst.iter().position(reached).unwrap_or(burst.len() - 1);
        let reached_ns = burst[at].ts_ns / self.tick_ns * self.tick_ns;
        self.due_ns = Some(reached_ns.saturating_add(self.tick_ns));
        self.mark = Some(Mark::Tick { number: self.ticks, time_ns: reached_ns });
        self.ticks += 1;
        // Before what the burst had no room for.
        self.carry.splice(..0, burst.drain(at..));
        burst.iter().map(|packet| packet.ts_ns).max().unwrap_or(0)
    }
}

impl Feed for PacketFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Vec<PacketRecord>) -> Fed {
        if let Some(mark) = self.mark.take() {
            return Fed::Mark(mark);
        }
        let high_ns = if self.carry.is_empty() {
            if self.watch.stopped() { 0 } else { self.read(burst) }
        } else {
            let room = burst.capacity() - burst.len();
            burst.extend(self.carry.drain(..room.min(self.carry.len())));
            burst.iter().map(|packet| packet.ts_ns).max().unwrap_or(0)
        };
        let Some(first) = burst.first() else {
            return Fed::Mark(Mark::End { time_ns: self.high_ns });
        };
        let tick_ns = self.tick_ns;
        let due_ns = *self
            .due_ns
            .get_or_insert_with(|| (first.ts_ns / tick_ns * tick_ns).saturating_add(tick_ns));
        // The end of all time is never due: no mark would get past a packet that stands there.
        let due = high_ns >= due_ns && due_ns < u64::MAX;
        // What is cut off counts when it is handed out.
        let high_ns = if due { self.cut(burst, due_ns) } else { high_ns };
        self.high_ns = self.high_ns.max(high_ns);
        match self.mark {
            Some(mark) if burst.is_empty() => {
                self.mark = None;
                Fed::Mark(mark)
            }
            _ => Fed::Items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringtap_capture::PcapWriter;
    use ringtap_wire::{HashKey, LinkType};

    const TICK: u64 = 100;

    fn decoder() -> Decoder {
        Decoder::new(HashKey::from_seed(1), Default::default())
    }

    fn file(times: &[u64], frame: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = PcapWriter::new(&mut bytes, LinkType(1), 100);
        for &time in times {
            writer.write(time, frame.len() as u32, frame).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        bytes
    }

    /// What comes out, marks as negative numbers, read with bursts of `burst`.
    fn sequence(times: &[u64], frame: &[u8], burst: usize) -> Vec<i64> {
        let files = Files::from_reader("test", std::io::Cursor::new(file(times, frame)));
        let watch = Watch::new();
        let mut feed = PacketFeed::new(files, decoder(), TICK, &watch);
        let mut out = Vec::new();
        loop {
            let mut items = Vec::with_capacity(burst);
            match feed.next(&mut items) {
                Fed::Items => {
                    assert_eq!(items.capacity(), burst, "no room was made");
                    out.extend(items.iter().map(|p| p.ts_ns as i64));
                }
                Fed::Mark(Mark::Tick { time_ns, .. }) => out.push(-(time_ns as i64)),
                Fed::Mark(Mark::End { time_ns }) => {
                    out.push(-1_000_000 - time_ns as i64);
                    assert_eq!(feed.counts().packets, times.len() as u64);
                    return out;
                }
                Fed::Idle => {}
            }
        }
    }

    #[test]
    fn marks_stand_where_packet_time_says_whatever_the_burst() {
        let times = [510, 520, 599, 600, 580, 610, 1_050, 700, 1_100, 1_100];
        let expected = [
            510, 520, 599, -600, 600, 580, 610, -1_000, 1_050, 700, -1_100, 1_100, 1_100,
            -1_001_100,
        ];
        for burst in 1..12 {
            assert_eq!(sequence(&times, &[0; 60], burst), expected, "bursts of {burst}");
        }
    }

    #[test]
    fn what_a_tunnel_carries_follows_it_whatever_the_burst() {
        let header =
            |len: u8| [0x45, 0, 0, len, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, len, 10, 0, 0, 1];
        let frame = [&[2; 12][..], &[8, 0], &header(40), &header(20)].concat();
        let times = [510, 520, 599, 600, 580, 610, 1_050, 700, 1_100, 1_101];
        let expected = [
            510, 510, 520, 520, 599, 599, -600, 600, 600, 580, 580, 610, 610, -1_000, 1_050, 1_050,
            700, 700, -1_100, 1_100, 1_100, 1_101, 1_101, -1_001_101,
        ];
        for burst in 1..24 {
            assert_eq!(sequence(&times, &frame, burst), expected, "bursts of {burst}");
        }
        let files = Files::from_reader("test", std::io::Cursor::new(file(&times, &frame)));
        let watch = Watch::new();
        let mut feed = PacketFeed::new(files, decoder(), u64::MAX, &watch);
        let mut order = Vec::new();
        loop {
            let mut items = Vec::with_capacity(7);
            match feed.next(&mut items) {
                Fed::Mark(_) => break,
                _ => order.extend(items.iter().map(|packet| packet.src[3])),
            }
        }
        assert_eq!(order, [40, 20].repeat(times.len()));
        assert_eq!((feed.counts().packets, feed.counts().inner, watch.packets.get()), (10, 10, 10));
    }

    /// A pcapng file counts seconds in 64 bits, and nanoseconds since 1970 end before that.
    #[test]
    fn the_latest_time_there_can_be_is_reached_and_passed() {
        let block = |kind: u32, body: &[u32]| {
            let len = 12 + 4 * body.len() as u32;
            let words: Vec<u32> = [kind, len].iter().chain(body).chain(&[len]).copied().collect();
            words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
        };
        let mut bytes = block(0x0a0d_0d0a, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
        // Ethernet; option 9: whole seconds.
        bytes.extend(block(1, &[1, 0, 9 | 1 << 16, 0, 0]));
        for high in [0, u32::MAX, u32::MAX, 1] {
            bytes.extend(block(6, &[0, high, 7, 4, 4, 0]));
        }
        let files = Files::from_reader("test", std::io::Cursor::new(bytes));
        let watch = Watch::new();
        let mut feed = PacketFeed::new(files, decoder(), TICK, &watch);
        let (mut times, mut marks) = (Vec::new(), 0);
        while marks < 10 {
            let mut items = Vec::with_capacity(2);
            match feed.next(&mut items) {
                Fed::Mark(Mark::End { time_ns: u64::MAX }) => break,
                Fed::Mark(_) => marks += 1,
                _ => times.extend(items.iter().map(|packet| packet.ts_ns)),
            }
        }
        assert_eq!(
            (times, marks),
            (vec![7_000_000_000, u64::MAX, u64::MAX, 4_294_967_303_000_000_000], 1)
        );
    }

    #[test]
    fn an_empty_file_ends_at_once() {
        assert_eq!(sequence(&[], &[], 8), [-1_000_000]);
    }
}
