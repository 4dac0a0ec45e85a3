//! Tests of the caches, with a planted bug: they are not invalidated.

use ringtap_ring::Kind;
use ringtap_skeleton::{RunOptions, Seating, ShardMap, Skeleton, simulate};

use super::*;
use crate::filter::history::{Judgement, check};
use crate::filter::oracle;
use crate::filter::packet::Control;
use crate::filter::permissions::Permissions;
use crate::filter::settings::Distribution;
use crate::filter::traffic::{Generator, Mix};
use crate::filter::work::Work;
use ringtap_filter::Policy;

#[test]
fn a_cache_that_is_not_invalidated_is_detected() {
    let mix = Mix::published(1).unwrap();
    let packets = || Generator::new(mix).take(20_000);
    for (distribution, workers) in [(Distribution::Address, 1), (Distribution::Random, 3)] {
        let settings = Settings {
            work: Work::Off,
            policy: Policy::Allow,
            distribution,
            ..Settings::new(mix.addresses())
        };
        let expected = oracle::run(packets(), settings.addresses, settings.policy, settings.work);
        for omits_marks in [false, true] {
            let recorder = Arc::new(Recorder::new(20_000));
            let mut app =
                Paper::new(settings, PaperSettings::default(), Some(Arc::clone(&recorder)));
            app.omits_marks = omits_marks;
            let options = RunOptions {
                shards: ShardMap::even(workers),
                ring: Kind::default(),
                capacity: 64,
                batch: 1,
                report_capacity: 16,
                seating: Seating::apart(workers, 2),
            };
            let feeds = vec![app.feed(packets())];
            let run = simulate::run(Skeleton::Farm, &app, feeds, &options, 7).unwrap();
            let history = recorder.history(packets(), |number| run.report.passed(number));
            let judgement =
                check(&history, Permissions::new(settings.addresses, Policy::Allow), 50_000);
            if omits_marks {
                assert_ne!(run.report, expected);
                assert!(run.report.first_difference(&expected).is_some());
                assert!(matches!(judgement, Judgement::Wrong { .. }), "{judgement:?}");
            } else {
                assert_eq!(run.report, expected);
                assert!(matches!(judgement, Judgement::Linearizable(_)));
            }
        }
    }
}

#[test]
fn hits_are_verdicts_that_are_cached_and_still_valid() {
    let data = |source| {
        let [sequence, tag, iterations, seed] = [0; 4];
        Packet::Data(Data {
            source,
            destination: 2,
            sequence,
            train_size: 1,
            tag,
            iterations,
            seed,
        })
    };
    let change = Control { address: 2, banned: false, accepting: true, begin: 0, end: 9 };
    // Of a cache of two pairs the third evicts the first, and a change makes what it concerns obsolete.
    let sources = [1, 1, 1, 3, 4, 1, 4].map(data);
    let packets = || {
        let behind = [Packet::Control(change), data(4), data(4)];
        sources.into_iter().chain(behind)
    };
    for (omits_marks, hits) in [(false, 4), (true, 5)] {
        let settings = Settings { work: Work::Off, policy: Policy::Allow, ..Settings::new(16) };
        let paper = PaperSettings { cache: 2, ..PaperSettings::default() };
        let mut app = Paper::new(settings, paper, None);
        app.omits_marks = omits_marks;
        let options = RunOptions {
            shards: ShardMap::even(1),
            ring: Kind::default(),
            capacity: 64,
            batch: 1,
            report_capacity: 16,
            seating: Seating::apart(1, 1),
        };
        let feeds = vec![app.feed(packets())];
        simulate::run(Skeleton::Farm, &app, feeds, &options, 7).unwrap();
        assert_eq!(app.hits(), hits, "{omits_marks}");
    }
}
