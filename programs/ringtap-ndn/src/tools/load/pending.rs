//! Pending Interests: sent and not answered.
//!
//! ```text
//!  by number:  | 7: /p/3 | 8: /p/1, answered | 9: /p/3 | …     by age; the oldest expires first
//!  by name:    /p/3 ─▶ 7, 9        /p/1 ─▶ –
//! ```
//!
//! A forwarder may aggregate Interests of one name and answer all with one Data. Therefore a Data
//! answers the Interest with its token and all older ones of its name.

use std::collections::{HashMap, VecDeque};

#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The number of the oldest Interest in `sent`.
    first: u64,
    sent: VecDeque<Option<Sent>>,
    by_name: HashMap<u64, VecDeque<u64>>,
    waiting: usize,
}

#[derive(Debug)]
struct Sent {
    name: u64,
    at_ns: u64,
}

impl Pending {
    /// Number of pending Interests.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// The number of the next Interest.
    pub(super) fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Adds an Interest for a name, sent at `at_ns`.
    pub(super) fn add(&mut self, name: u64, at_ns: u64) {
        let number = self.next();
        self.by_name.entry(name).or_default().push_back(number);
        self.sent.push_back(Some(Sent { name, at_ns }));
        self.waiting += 1;
    }

    /// Handles an answer to a name, with its number if known. Calls `each` with the send time of
    /// each Interest that it answers; returns their number.
    pub(super) fn answer(
        &mut self,
        name: u64,
        number: Option<u64>,
        mut each: impl FnMut(u64),
    ) -> u64 {
        let Some(numbers) = self.by_name.get_mut(&name) else { return 0 };
        let mut answered = 0;
        while let Some(&oldest) = numbers.front()
            && number.is_none_or(|number| oldest <= number)
        {
            numbers.pop_front();
            let at = (oldest - self.first) as usize;
            if let Some(sent) = self.sent.get_mut(at).and_then(Option::take) {
                each(sent.at_ns);
                answered += 1;
            }
        }
        if numbers.is_empty() {
            self.by_name.remove(&name);
        }
        self.waiting -= answered as usize;
        self.trim();
        answered
    }

    /// Send time of the oldest Interest.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.sent.front()?.as_ref().map(|sent| sent.at_ns)
    }

    /// Expires Interests sent before this time; returns their number.
    pub(super) fn expire(&mut self, before_ns: u64) -> u64 {
        let mut lost = 0;
        while let Some(Some(sent)) = self.sent.front()
            && sent.at_ns <= before_ns
        {
            if let Some(numbers) = self.by_name.get_mut(&sent.name) {
                // The oldest of all is the oldest of its name.
                numbers.pop_front();
                if numbers.is_empty() {
                    self.by_name.remove(&sent.name);
                }
            }
            self.sent.pop_front();
            self.first += 1;
            lost += 1;
            self.trim();
        }
        self.waiting -= lost as usize;
        lost
    }

    /// Removes answered Interests up to the first pending one.
    fn trim(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pending: &mut Pending, name: u64, number: Option<u64>) -> Vec<u64> {
        let mut times = Vec::new();
        pending.answer(name, number, |at| times.push(at));
        times
    }

    #[test]
    fn a_data_answers_its_interest_and_all_older_ones_of_its_name() {
        let mut pending = Pending::default();
        for (name, at) in [(3, 10), (1, 11), (3, 12), (3, 13)] {
            pending.add(name, at);
        }
        assert_eq!(times(&mut pending, 3, Some(2)), [10, 12]);
        assert_eq!(times(&mut pending, 3, Some(2)), [0; 0]);
        assert_eq!(times(&mut pending, 9, None), [0; 0]);
        assert_eq!((pending.len(), pending.oldest_ns(), pending.next()), (2, Some(11), 4));
        assert_eq!(times(&mut pending, 3, None), [13]);
        assert_eq!(times(&mut pending, 1, Some(7)), [11]);
        assert_eq!((pending.len(), pending.oldest_ns(), pending.next()), (0, None, 4));
        assert!(pending.by_name.is_empty());
    }

    #[test]
    fn an_expired_interest_is_not_answered() {
        let mut pending = Pending::default();
        for (name, at) in [(1, 10), (2, 11), (1, 12)] {
            pending.add(name, at);
        }
        times(&mut pending, 2, None);
        assert_eq!((pending.expire(9), pending.expire(11), pending.len()), (0, 1, 1));
        assert_eq!(pending.oldest_ns(), Some(12));
        assert_eq!(times(&mut pending, 1, Some(0)), [0; 0]);
        assert_eq!(times(&mut pending, 1, Some(2)), [12]);
        assert_eq!((pending.expire(100), pending.len()), (0, 0));
    }
}
