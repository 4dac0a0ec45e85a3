//! `ringtap-ndn forward ctl PATH events`: prints events of faces as they happen.

use std::time::Duration;

use ringtap_base::now_ns;
use ringtap_ndn::packets::management::FaceEvent;
use ringtap_ndn::packets::{Data, NameBuf, NewInterest};

use super::client::{Client, to_bytes};
use super::text;
use crate::run::RUN;
use ringtap_terminal::console;

/// Lifetime of a request that waits for an event. After it, the request is repeated.
const LIFETIME: Duration = Duration::from_secs(10);

/// The time that the forwarder has for the answer to a request that it need not wait for.
const ANSWER: Duration = Duration::from_secs(1);

/// Prints events until `count` are printed or the run is stopped.
pub(super) fn run(client: &mut Client, count: Option<u64>) -> anyhow::Result<()> {
    let left = count.unwrap_or(u64::MAX);
    let mut next = None;
    let mut printed = 0;
    while printed < left && !RUN.ends() {
        let name = match next {
            Some(number) => FaceEvent::name(number),
            None => FaceEvent::PREFIX.parse()?,
        };
        let received = match request(client, &name, next.is_none(), LIFETIME)? {
            Some(received) => received,
            // The event may be older than those that the forwarder keeps.
            None => match (next, newest(client)?) {
                (Some(number), Some(newest)) if newest.0 > number => {
                    let missed = newest.0 - number;
                    console::note(&format!("events missed: {missed}"));
                    newest
                }
                _ => continue,
            },
        };
        let (number, event) = received;
        // An answer to an earlier request that arrives late.
        if next.is_some_and(|next| number < next) {
            continue;
        }
        console::print_plain(&text::event(&event))?;
        printed += 1;
        next = Some(number + 1);
    }
    Ok(())
}

/// The newest event, however old.
fn newest(client: &mut Client) -> anyhow::Result<Option<(u64, FaceEvent)>> {
    let prefix: NameBuf = FaceEvent::PREFIX.parse()?;
    let mut interest = NewInterest::new(prefix.as_name(), now_ns() as u32);
    (interest.can_be_prefix, interest.lifetime_ms) = (true, Some(1));
    receive(client, &interest, ANSWER)
}

fn request(
    client: &mut Client,
    name: &NameBuf,
    is_prefix: bool,
    lifetime: Duration,
) -> anyhow::Result<Option<(u64, FaceEvent)>> {
    let mut interest = NewInterest::new(name.as_name(), now_ns() as u32);
    (interest.can_be_prefix, interest.must_be_fresh) = (is_prefix, is_prefix);
    interest.lifetime_ms = Some(lifetime.as_millis() as u64);
    receive(client, &interest, lifetime)
}

/// The number and the event in the answer, if it arrives in time.
fn receive(
    client: &mut Client,
    interest: &NewInterest<'_>,
    timeout: Duration,
) -> anyhow::Result<Option<(u64, FaceEvent)>> {
    let Some(data) = client.request_within(&to_bytes(interest), timeout, || RUN.ends())? else {
        return Ok(None);
    };
    let data = Data::read(&data)?;
    let event = FaceEvent::read(data.content)?;
    Ok(FaceEvent::number(&data.name).map(|number| (number, event)))
}
