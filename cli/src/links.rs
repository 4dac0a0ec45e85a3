//! Reports changes of the interfaces that a command has open: down, up, renamed, another MTU.
//!
//! The attendant thread reads them ([`turn`]), because it runs beside every command. They cost the
//! threads that read packets nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ringtap_engine::{LinkChange, Watch};
use ringtap_io::live::{LinkChanges, LinkFollower, Receiver, State};
use ringtap_terminal::console::print_message;

/// The interfaces of this process.
static FOLLOWER: Mutex<Option<LinkFollower>> = Mutex::new(None);

fn follower() -> MutexGuard<'static, Option<LinkFollower>> {
    FOLLOWER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the interface of these receivers from now on. `place` is that of its changes in
/// [`Watch::interfaces`].
pub(crate) fn follow(place: usize, receivers: &[Receiver]) {
    if let Some(first) = receivers.first() {
        follow_by(|follower| follower.add_receiver(place, first));
    }
}

/// Follows the interface called `name`, which sends, from now on.
pub(crate) fn follow_sender(place: usize, name: &str) {
    follow_by(|follower| follower.add_sender(place, name));
}

fn follow_by(add: impl FnOnce(&mut LinkFollower) -> std::io::Result<()>) {
    let mut follower = follower();
    let new = match follower.take() {
        None => LinkFollower::new(),
        Some(follower) => Ok(follower),
    };
    let added = new.and_then(|new| add(follower.insert(new)));
    if let Err(error) = added {
        print_message("warning", &format!("changes of interfaces are not reported: {error}"));
    }
}

/// Counts what has changed in `watch`, and passes a sentence for each change to `report`.
pub(crate) fn turn(watch: &Watch, mut report: impl FnMut(&str)) {
    let changes = follower().as_mut().map(LinkFollower::turn).unwrap_or_default();
    for LinkChanges { place, state, downs, mtu_changes, renames, texts } in changes {
        watch.interfaces.set_up(place, state == State::Up);
        for (change, more) in
            [(LinkChange::Down, downs), (LinkChange::Mtu, mtu_changes), (LinkChange::Name, renames)]
        {
            watch.interfaces.add_changes(place, change, more);
        }
        texts.iter().for_each(|text| report(text));
    }
}
