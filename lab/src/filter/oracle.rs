//! The serial oracle: handles one packet after the other, in the simplest possible way. Every
//! design must yield its verdicts and its histogram.

use crate::filter::outcome::{Outcome, WorkerOutcome};
use crate::filter::packet::Packet;
use crate::filter::permissions::Permissions;
use crate::filter::work::Work;
use ringtap_filter::Policy;

/// Handles all packets and returns the reference outcome.
pub fn run(
    packets: impl IntoIterator<Item = Packet>,
    addresses: usize,
    policy: Policy,
    work: Work,
) -> Outcome {
    let mut permissions = Permissions::new(addresses, policy);
    let mut outcome = WorkerOutcome::new(work, None);
    for (number, packet) in (0..).zip(packets) {
        match packet {
            Packet::Control(control) => {
                permissions.change(&control);
                outcome.control(number);
            }
            Packet::Data(data) => {
                outcome.data(number, data.job(), permissions.pass(&data));
                outcome.run_jobs();
            }
        }
    }
    outcome.close()
}
