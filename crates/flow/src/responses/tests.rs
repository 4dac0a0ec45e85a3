use super::*;

const MS: u64 = 1_000_000;

/// A flow whose direction 0 is the client, and its time.
struct Wire {
    requests: Requests,
    ns: u64,
    client: Option<bool>,
    /// Responses to requests without room.
    untimed: u32,
}

impl Wire {
    fn new() -> Self {
        let mut requests = Requests::default();
        requests.push();
        Self { requests, ns: 1_000_000 * MS, client: Some(true), untimed: 0 }
    }

    fn segment(&mut self, ms: u64, side: usize, place: [bool; 3]) -> Option<u64> {
        self.ns += ms * MS;
        let [is_new, is_behind_gap, has_message] = place;
        let news = News { is_new, is_behind_gap, begins: false };
        let data = Data { side, octets: 3, ns: self.ns, news, has_message };
        let client = self.client.map(|own| own == (side == 0));
        let time_us = self.requests.on_data(0, &data, || client);
        if let Some(time_us) = time_us {
            self.requests.add(0, time_us);
        }
        time_us
    }

    /// New data without a message, after `ms` milliseconds.
    fn data(&mut self, ms: u64, side: usize) -> Option<u64> {
        self.segment(ms, side, [true, false, false])
    }

    fn request(&mut self, ms: u64, is_hello: bool) {
        self.segment(ms, 0, [true, false, true]);
        self.requests.on_request(0, 0, self.ns, is_hello);
    }

    fn response(&mut self, ms: u64, is_hello: bool) -> Option<u64> {
        self.segment(ms, 1, [true, false, true]);
        let answered = self.requests.on_response(0, 1, self.ns, is_hello);
        self.untimed += u32::from(answered == Some(None));
        let time_us = answered.flatten();
        if let Some(time_us) = time_us {
            self.requests.add(0, time_us);
        }
        time_us
    }
}

#[test]
fn other_connections_are_timed_from_first_data_to_first_data() {
    let mut wire = Wire::new();
    assert_eq!((wire.data(0, 0), wire.data(5, 0), wire.data(7, 1)), (None, None, Some(12_000)));
    assert_eq!((wire.data(1, 0), wire.data(1, 1)), (None, None));
    assert_eq!(wire.requests.times(0), Some(ResponseTimes { sum_us: 12_000, count: 1 }));
    assert_eq!(wire.requests.octets(0), [9, 6]);
    let mut other = Requests::default();
    other.push_saved(&wire.requests.saved(0));
    assert_eq!((other.octets(0), other.times(0)), ([9, 6], wire.requests.times(0)));
    wire.requests.cut(0);
    wire.data(1, 0);
    assert_eq!(wire.requests.octets(0), [3, 0]);
    // The server speaks first, or it is not known which side it is.
    for (client, first) in [(Some(true), 1), (None, 0), (None, 1)] {
        let mut wire = Wire { client, ..Wire::new() };
        for side in [first, 1 - first, first, 1 - first] {
            assert_eq!(wire.data(1, side), None);
        }
        assert_eq!(wire.requests.times(0), None);
    }
}

#[test]
fn a_request_ends_with_its_last_new_data() {
    let mut wire = Wire::new();
    wire.request(0, false);
    wire.data(10, 0);
    // Sent again.
    wire.segment(20, 0, [false, false, false]);
    assert_eq!(wire.response(300, false), Some(320_000));
    assert_eq!(wire.response(1, false), None);
    // Of a hello only its own packet counts.
    wire.request(5, true);
    wire.data(10, 0);
    assert_eq!((wire.response(1, false), wire.response(1, true)), (None, Some(12_000)));
    assert_eq!(wire.requests.times(0), Some(ResponseTimes { sum_us: 332_000, count: 2 }));
}

#[test]
fn a_pipeline_is_answered_in_order_and_bounded() {
    let mut wire = Wire::new();
    for _ in 0..QUEUE + 3 {
        wire.request(1, false);
    }
    // A request behind those without room has none either.
    assert_eq!(wire.response(1, false), Some(QUEUE as u64 * 1_000 + 3_000));
    wire.request(0, false);
    for answered in 0..QUEUE as u64 {
        assert_eq!(wire.response(0, false), Some((QUEUE as u64 + 2 - answered) * 1_000));
    }
    assert_eq!([0; 3].map(|ms| wire.response(ms, false)), [None; 3]);
    wire.request(0, false);
    wire.request(2, false);
    assert_eq!([wire.response(3, false), wire.response(0, false)], [Some(5_000), Some(3_000)]);
    let Requests { sums, queues, .. } = &wire.requests;
    assert_eq!((sums.counts(), queues.counts()), ((1, 0), (1, 1)));
    wire.requests.swap_remove(0);
    assert_eq!((wire.requests.lines.len(), wire.requests.sums.counts()), (0, (1, 1)));
    assert_eq!(wire.untimed, 3);
}

#[test]
fn what_waits_ends_with_its_connection() {
    let mut wire = Wire::new();
    wire.request(0, false);
    wire.request(0, false);
    wire.requests.begin(0);
    wire.request(60_000, false);
    assert_eq!((wire.response(7, false), wire.response(9, false)), (Some(7_000), None));
    // Other data, too.
    let mut wire = Wire::new();
    wire.data(0, 0);
    wire.requests.begin(0);
    wire.data(60_000, 0);
    assert_eq!(wire.data(4, 1), Some(4_000));
}

#[test]
fn behind_a_gap_a_request_replaces_those_that_wait() {
    for (gap, time_us) in [(false, 9_000), (true, 2_000)] {
        let mut wire = Wire::new();
        wire.request(0, false);
        wire.segment(3, 1, [true, gap, false]);
        wire.request(4, false);
        assert_eq!(wire.response(2, false), Some(time_us), "{gap}");
    }
}

#[test]
fn times_below_zero_and_beyond_an_hour_are_none() {
    let mut wire = Wire::new();
    wire.request(0, false);
    wire.ns -= 5 * MS;
    assert_eq!(wire.response(0, false), None);
    for (ms, time_us) in [(3_600_000, Some(MOST_US)), (3_600_001, None)] {
        wire.request(0, false);
        assert_eq!(wire.response(ms, false), time_us);
    }
}

#[test]
fn the_next_part_knows_what_waits() {
    let mut wire = Wire::new();
    wire.request(0, false);
    wire.request(1, false);
    assert_eq!(wire.response(1, false), Some(2_000));
    wire.requests.restart(0, true);
    assert_eq!(wire.requests.times(0), None);
    assert_eq!(wire.response(1, false), Some(2_000));
    wire.request(1, false);
    wire.requests.restart(0, false);
    assert_eq!((wire.response(1, false), wire.requests.times(0)), (None, None));
    assert_eq!(wire.requests.sums.counts().1, 1);
}

#[test]
fn a_message_that_is_timed_otherwise_is_no_first_data() {
    let mut wire = Wire::new();
    wire.data(0, 0);
    wire.requests.settle(0);
    assert_eq!(wire.data(1, 1), None);
}

#[test]
fn the_bytes_of_times_are_theirs() {
    let times = ResponseTimes { sum_us: 7 << 40, count: 3 };
    assert_eq!(ResponseTimes::from_canonical(&times.canonical()), Some(times));
    assert_eq!(ResponseTimes::from_canonical(&ResponseTimes::default().canonical()), None);
    let both = times.with(ResponseTimes { sum_us: u64::MAX, count: u32::MAX });
    assert_eq!(both, ResponseTimes { sum_us: u64::MAX, count: u32::MAX });
    assert_eq!((times.mean_us(), ResponseTimes::default().mean_us()), (Some((7 << 40) / 3), None));
}
