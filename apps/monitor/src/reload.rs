//! Settings that a run takes up while it goes on.
//!
//! ```text
//! post ─▶ the latest setup ─┬─▶ each worker, before its next packets
//!                           └─▶ the merger, before a partial result of a worker that has it
//! ```
//!
//! Live flows, open alerts and all counts stay. What decides the memory of tables does not change: a run has room for its
//! lists ([`Options::list_bytes`]), and lists beyond it are refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ringtap_enrich::Enrichment;
use ringtap_terminal::numbers::bytes;

use crate::Options;
use crate::analyses::changes::OwnNetworks;
use crate::analyses::{Analyses, Context};
use crate::options::Setup;

/// Why settings are not taken up. Nothing has changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Other analyses would run.
    #[error("the analyses would be {now} instead of {before}, which needs a restart")]
    Analyses {
        /// The names of those that run.
        before: String,
        /// The names of those of the settings.
        now: String,
    },
    /// The lists are too large.
    #[error("the lists need {}, and this run has room for {}", bytes(*.needed), bytes(*.room))]
    Lists {
        /// Bytes of the lists that are used, and of the new ones.
        needed: u64,
        /// [`Options::list_bytes`].
        room: u64,
    },
    /// The lists of names have too many labels.
    #[error("the lists of names of this run have {0} labels: too many")]
    Labels(usize),
    /// The lists of watched entries have too many.
    #[error("the lists of watched entries of this run have too many entries")]
    Entries,
    /// The run has not begun, or has ended.
    #[error("the run does not go on")]
    NoRun,
}

/// The settings of a run, for those who change them.
#[derive(Default)]
pub struct Reloads {
    /// Set when the run begins.
    latest: OnceLock<Mutex<Latest>>,
    /// How often settings were posted.
    number: AtomicU64,
}

/// Options that were checked.
pub struct Next {
    setup: Arc<Setup>,
    labels: BTreeSet<String>,
}

#[derive(Clone)]
struct Latest {
    setup: Arc<Setup>,
    /// Labels of all lists of names so far: the sums of applications have them until the end.
    labels: BTreeSet<String>,
    most_labels: usize,
}

impl Latest {
    /// The setup with these options, and the labels so far.
    fn next(&self, options: &Options) -> Result<Next, Refused> {
        let before = &self.setup.options;
        if options.analyses != before.analyses {
            let text = |analyses: Analyses| analyses.names().join(",");
            let (before, now) = (text(before.analyses), text(options.analyses));
            return Err(Refused::Analyses { before, now });
        }
        let mut options = options.clone();
        let mut needed = before.lists() + options.lists();
        if let (Some(now), Some(list)) = (&options.watch, &before.watch) {
            if now.is_like(list) {
                options.watch = Some(Arc::clone(list));
            } else {
                // While both are joined, there are three of them.
                needed += list.memory() + now.memory();
                if needed <= before.list_bytes {
                    options.watch = Some(Arc::new(now.after(list).ok_or(Refused::Entries)?));
                }
            }
        }
        if needed > before.list_bytes {
            return Err(Refused::Lists { needed, room: before.list_bytes });
        }
        let mut labels = self.labels.clone();
        labels.extend(options.names.each_label().map(str::to_owned));
        if labels.len() > self.most_labels {
            return Err(Refused::Labels(labels.len()));
        }
        Ok(Next { setup: Arc::new(self.setup.with(options)), labels })
    }
}

impl Reloads {
    /// A run begins.
    pub(crate) fn begin(&self, setup: &Setup) {
        let names = &setup.options.names;
        let latest = Latest {
            setup: Arc::new(setup.clone()),
            labels: names.each_label().map(str::to_owned).collect(),
            most_labels: setup.options.most_labels(),
        };
        self.latest.get_or_init(|| Mutex::new(latest));
    }

    fn latest(&self) -> Option<MutexGuard<'_, Latest>> {
        let latest = self.latest.get()?;
        Some(latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks whether these options can be those of later packets: thresholds, limits, watched entries, rules for alerts,
    /// networks, databases, names. Others of them are ignored.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check(&self, options: &Options) -> Result<Next, Refused> {
        // Workers do not wait for it.
        let now = self.latest().map(|latest| latest.clone()).ok_or(Refused::NoRun)?;
        now.next(options)
    }

    /// Makes checked options those of later packets.
    pub fn post(&self, next: Next) {
        if let Some(mut latest) = self.latest() {
            (latest.setup, latest.labels) = (next.setup, next.labels);
            // Release: pairs with the Acquire in `since`.
            self.number.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether the run has begun.
    pub fn has_begun(&self) -> bool {
        self.latest.get().is_some()
    }

    /// The latest setup, unless it is the one of this number, which is updated.
    #[inline(always)]
    pub(crate) fn since(&self, number: &mut u64) -> Option<Arc<Setup>> {
        let now = self.number.load(Ordering::Acquire);
        if now == *number {
            return None;
        }
        *number = now;
        self.latest().map(|latest| Arc::clone(&latest.setup))
    }

    /// How often settings were posted.
    pub fn count(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// The options that apply now, once the run has begun.
    pub fn options(&self) -> Option<Options> {
        self.latest().map(|latest| latest.setup.options.clone())
    }
}

impl Setup {
    /// The setup with what may change of these options.
    fn with(&self, new: Options) -> Self {
        let enrichment = Enrichment {
            // Outputs of a run have one key.
            anonymiser: self.options.enrichment.anonymiser.clone(),
            interfaces: self.options.enrichment.interfaces.clone(),
            ..new.enrichment
        };
        let context = Context {
            scan_threshold: new.scan_threshold,
            udp_scan_threshold: new.udp_scan_threshold,
            limits: new.limits,
            change_limits: new.change_limits,
            own_networks: OwnNetworks(enrichment.networks.clone()),
            watch: new.watch.clone(),
            ..self.context.clone()
        };
        let options = Options {
            scan_threshold: new.scan_threshold,
            udp_scan_threshold: new.udp_scan_threshold,
            limits: new.limits,
            change_limits: new.change_limits,
            watch: new.watch,
            allow: new.allow,
            names: new.names,
            enrichment,
            ..self.options.clone()
        };
        Self { options, context, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_engine::{Machine, Plan};
    use ringtap_enrich::{EntryKind, WatchList};
    use ringtap_wire::Paths;

    use super::*;

    fn machine() -> Machine {
        Machine { cores: 2, allowed_cores: vec![0, 1], memory_bytes: 8 << 30 }
    }

    fn plan(options: Options) -> Plan<Options> {
        let run = ringtap_engine::Options {
            memory_bytes: Some(1 << 28),
            ..ringtap_engine::Options::default()
        };
        Plan::new(run, Options { reloads: true, ..options }, &machine()).unwrap()
    }

    fn watching(text: &str) -> Options {
        let watch = Some(Arc::new(WatchList::parse(text.as_bytes()).unwrap()));
        Options { watch, ..Options::default() }
    }

    #[test]
    fn settings_are_taken_up_once_and_refused_whole() {
        let first = plan(watching("example.org\n10.0.0.0/8"));
        let reloads = Reloads::default();
        let post = |options: &Options| reloads.check(options).map(|next| reloads.post(next));
        assert_eq!(post(&first.app), Err(Refused::NoRun));
        reloads.begin(&Setup::of(&first, &Arc::new(Paths::new())));
        let mut seen = 0;
        assert!(reloads.since(&mut seen).is_none());

        let next = Options { scan_threshold: 7, ..watching("10.0.0.0/8 own\nexample.com") };
        post(&plan(next).app).unwrap();
        let setup = reloads.since(&mut seen).unwrap();
        assert!(reloads.since(&mut seen).is_none());
        assert_eq!((setup.context.scan_threshold, setup.options.scan_threshold), (7, 7));
        assert!(Arc::ptr_eq(
            &setup.context.suspects,
            &reloads.since(&mut 0).unwrap().context.suspects
        ));
        let list = setup.context.watch.clone().unwrap();
        let entries = [0, 1, 2].map(|entry| list.text(entry));
        assert_eq!(entries, ["example.org", "10.0.0.0/8", "example.com"]);
        assert_eq!(list.count(EntryKind::Name), 1);

        // Without the list its analysis would not run.
        let refused = post(&plan(Options::default()).app).unwrap_err().to_string();
        assert!(refused.contains("watch,") || refused.contains("watch "), "{refused}");
        let names: String = (0..1 << 19).map(|n| format!("n{n}.example.org\n")).collect();
        let large = Options { scan_threshold: 9, ..watching(&names) };
        let large = Plan {
            app: Options { analyses: first.app.analyses, ..large },
            ..plan(watching("a.example"))
        };
        assert!(matches!(post(&large.app), Err(Refused::Lists { .. })));
        assert_eq!((reloads.count(), reloads.options().unwrap().scan_threshold), (1, 7));
    }

    /// Its room is a multiple of its own size, and more.
    #[test]
    fn a_large_list_that_is_read_again_has_room_and_so_has_another_one() {
        let names =
            |zone: &str| -> String { (0..1 << 19).map(|n| format!("n{n}.{zone}\n")).collect() };
        let one = names("example.org");
        let first = plan(watching(&one));
        let reloads = Reloads::default();
        reloads.begin(&Setup::of(&first, &Arc::new(Paths::new())));
        let before = reloads.options().unwrap().watch.unwrap();
        for _ in 0..2 {
            reloads.post(reloads.check(&watching_all(&first, &one)).unwrap());
            assert!(Arc::ptr_eq(&before, &reloads.options().unwrap().watch.unwrap()));
        }
        let other = reloads.check(&watching_all(&first, &names("example.com"))).unwrap();
        assert!(other.setup.options.watch.as_ref().unwrap().memory() > before.memory());
    }

    /// The options of a plan with another list.
    fn watching_all(plan: &Plan<Options>, text: &str) -> Options {
        Options { watch: watching(text).watch, ..plan.app.clone() }
    }
}
