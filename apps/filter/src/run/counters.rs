//! Counters of packets by outcome, owned by one worker.

use std::sync::Arc;

use crate::{Counters, RuleSet, TransactionError};

use super::judge::Judged;

#[derive(Clone, Debug)]
pub(super) struct PacketCounters {
    /// The rules used last.
    pub(super) rules: Arc<RuleSet>,
    pub(super) counters: Counters,
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// Without IP: passed, and dropped.
    pub(super) not_ip: [u64; 2],
    pub(super) no_address: u64,
    pub(super) control: u64,
    /// Refused, and missing in the capture of drops.
    pub(super) drops_not_written: u64,
}

impl PacketCounters {
    pub(super) fn new(rules: Arc<RuleSet>) -> Self {
        Self {
            counters: Counters::new(&rules),
            rules,
            packets: 0,
            octets: 0,
            not_ip: [0; 2],
            no_address: 0,
            control: 0,
            drops_not_written: 0,
        }
    }

    /// Later packets are judged by these.
    pub(super) fn change(&mut self, rules: &Arc<RuleSet>) {
        if !Arc::ptr_eq(&self.rules, rules) {
            self.counters.change(&self.rules, rules);
            self.rules = Arc::clone(rules);
        }
    }

    #[inline]
    pub(super) fn count(&mut self, judged: &Judged, original_len: u32) {
        self.packets += 1;
        self.octets += u64::from(original_len);
        match judged {
            Judged::Ruled(verdict) => self.counters.count(verdict),
            Judged::NotIp(passed) => self.not_ip[usize::from(!passed)] += 1,
            Judged::NoAddress => self.no_address += 1,
            Judged::Control => self.control += 1,
        }
    }

    /// Packets that passed.
    pub(super) fn passed(&self) -> u64 {
        self.counters.passed() + self.not_ip[0]
    }

    /// Adds other counters.
    pub(super) fn add(&mut self, other: Self) {
        self.counters.add(&self.rules, other.counters, &other.rules);
        self.packets += other.packets;
        self.octets += other.octets;
        (0..2).for_each(|at| self.not_ip[at] += other.not_ip[at]);
        self.no_address += other.no_address;
        self.control += other.control;
        self.drops_not_written += other.drops_not_written;
    }
}

/// Counters of the changes by control packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) made: u64,
    pub(super) refused: u64,
    /// Control packets with an invalid tag or a repeated sequence number; judged like any other packet.
    pub(super) forged: u64,
    /// Why the last refused one was refused.
    pub(super) why: Option<String>,
}

impl Changes {
    /// Counts a transaction; returns its result.
    pub(super) fn note<T>(&mut self, made: Result<T, TransactionError>) -> Option<T> {
        match made {
            Ok(made) => {
                self.made += 1;
                Some(made)
            }
            Err(error) => {
                self.refused += 1;
                self.why = Some(error.to_string());
                None
            }
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.made += other.made;
        self.refused += other.refused;
        self.forged += other.forged;
        self.why = self.why.take().or(other.why);
    }
}
