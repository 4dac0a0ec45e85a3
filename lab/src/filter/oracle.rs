//! The serial oracle: one packet after the other, as plainly as it can be said. Every design must
//! give its verdicts and its histogram.

use crate::filter::outcome::{Outcome, Tally};
use crate::filter::packet::Packet;
use crate::filter::permissions::Permissions;
use crate::filter::work::Work;
use ringtap_filter::Policy;

/// The right answer.
pub fn run(
    packets: impl IntoIterator<Item = Packet>,
    addresses: usize,
    policy: Policy,
    work: Work,
) -> Outcome {
    let mut permissions = Permissions::new(addresses, policy);
    let mut tally = Tally::new(work, None);
    for (number, packet) in (0..).zip(packets) {
        match packet {
            Packet::Control(control) => {
                permissions.change(&control);
                tally.control(number);
            }
            Packet::Data(data) => {
                tally.data(number, data.job(), permissions.pass(&data));
                tally.work_off();
            }
        }
    }
    tally.close()
}
