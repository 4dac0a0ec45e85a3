//! The experiments of `experiments/`, compiled into the program.

use crate::LabError;
use crate::experiment::{Experiment, Paper};

/// Defines `PAPERS` and `EXPERIMENTS`: names and contents of `experiments/PAPER/NAME.toml`.
macro_rules! files {
    ($($paper:literal: $($name:literal)*;)*) => {
        /// Papers in the order of the report, and their files.
        const PAPERS: &[(&str, &str)] = &[$((
            $paper,
            include_str!(concat!("../../experiments/", $paper, "/paper.toml")),
        )),*];
        const EXPERIMENTS: &[(&str, &str)] = &[$($((
            concat!($paper, "/", $name, ".toml"),
            include_str!(concat!("../../experiments/", $paper, "/", $name, ".toml")),
        )),*),*];
    };
}

files! {
    "mcringbuffer": "figure-8" "figure-9" "figure-10" "figure-11" "figure-13";
    "ffprobe": "microbenchmarks" "arrangements" "grain" "nprobe";
    "pit": "section-3.2" "figure-2";
    "filter": "figure-1" "figure-2" "figure-3" "figure-4";
    "measurement": "rss-table" "non-rss-table" "sketch-size" "pool-size" "cores" "packet-size" "which-design"
        "accuracy";
}

/// All papers, each with the name of its folder.
pub fn papers() -> Result<Vec<(&'static str, Paper)>, LabError> {
    let paper = |&(name, text): &(&'static str, &str)| {
        let paper = toml::from_str(text).map_err(|error| LabError::Experiment {
            file: format!("{name}/paper.toml"),
            reason: error.to_string(),
        })?;
        Ok((name, paper))
    };
    PAPERS.iter().map(paper).collect()
}

/// All experiments, in the order of the papers.
pub fn experiments() -> Result<Vec<Experiment>, LabError> {
    EXPERIMENTS.iter().map(|(file, text)| Experiment::parse(file, text)).collect()
}

/// The experiments that `ids` select: an id, the part of an id before `/` for a group, or `all`.
/// An id that selects nothing is [`LabError::Unknown`].
pub fn chosen(ids: &[String]) -> Result<Vec<Experiment>, LabError> {
    let all = experiments()?;
    let group = |id: &str| id.split('/').next().unwrap_or("").to_owned();
    let selects = |id: &String, experiment: &Experiment| {
        *id == "all" || *id == experiment.id || *id == group(&experiment.id)
    };
    if let Some(id) = ids.iter().find(|id| !all.iter().any(|known| selects(id, known))) {
        return Err(LabError::Unknown { id: id.clone() });
    }
    Ok(all.into_iter().filter(|known| ids.iter().any(|id| selects(id, known))).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::experiment::{OneOrMore, Selector};
    use crate::judge::ROUNDS_MIN;
    use crate::settings::{Setting, settings};

    #[test]
    fn every_file_of_the_folder_is_in_the_catalogue() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
        let mut files = 0;
        for paper in std::fs::read_dir(folder).unwrap().flatten().filter(|f| f.path().is_dir()) {
            let names = std::fs::read_dir(paper.path()).unwrap().flatten();
            files += names.filter(|f| f.path().extension().is_some_and(|e| e == "toml")).count();
        }
        assert_eq!(files, PAPERS.len() + EXPERIMENTS.len());
    }

    #[test]
    fn every_experiment_can_be_planned_and_every_claim_refers_to_existing_settings() {
        let papers: BTreeSet<_> = papers().unwrap().into_iter().map(|(name, _)| name).collect();
        let mut ids = BTreeSet::new();
        for experiment in experiments().unwrap() {
            let id = &experiment.id;
            assert!(ids.insert(id.clone()), "{id} is defined twice");
            assert!(papers.contains(experiment.paper.as_str()), "{id}");
            settings(&experiment, true).unwrap();
            // Claims are checked against the full run: a quick run may leave out points.
            let full = settings(&experiment, false).unwrap();
            assert!(full.len() < 400, "{id}: {} settings", full.len());
            let mut names = full.iter().flat_map(|setting| setting.parameters.keys());
            assert!(!names.any(|name| crate::rows::is_fixed(name)), "{id}");
            let of = |quantity: &str| full.iter().any(|s| s.values.contains_key(quantity));
            assert!(of(&experiment.plot.y), "{id} plots a quantity that is not measured");
            for claim in &experiment.claims {
                let what = format!("{id}: {}", claim.text);
                let Some(quantity) = &claim.quantity else {
                    assert!(full.iter().any(|s| !s.equal.is_empty()), "{what}");
                    continue;
                };
                assert!(of(quantity) && claim.over.as_deref().is_none_or(of), "{what}");
                // The effect is the figure that the paper prints.
                if let Some(effect) = claim.effect {
                    assert!(claim.paper.contains(&effect.to_string()), "{what}: {effect}");
                }
                assert!(claim.saturated.as_ref().is_none_or(|limit| of(&limit.quantity)), "{what}");
                let mut selectors = std::iter::once(&claim.of).chain(&claim.to);
                if selectors.any(|selector| selector.best.is_some()) {
                    assert!(experiment.full.repeat >= 2 * ROUNDS_MIN as u32, "{what}");
                }
                for selector in std::iter::once(&claim.of).chain(&claim.to) {
                    check_selector(&what, selector, claim.each.as_deref(), &full);
                    check_selector(&what, &claim.base(selector), claim.each.as_deref(), &full);
                }
            }
        }
        assert!(crate::compare::DEFAULT.iter().all(|id| ids.contains(*id)));
    }

    /// A claim that no measurement can contradict must not have the kind `measured`.
    #[test]
    fn the_kind_of_each_claim_matches_its_contents() {
        use crate::experiment::ClaimKind;
        let mut counts = [0; ClaimKind::ALL.len()];
        for experiment in experiments().unwrap() {
            for claim in &experiment.claims {
                counts[claim.kind as usize] += 1;
                let what = format!("{}: {}", experiment.id, claim.text);
                let is_modelled = |selector: &Selector| {
                    let wanted = selector.wanted.get("candidate").map(OneOrMore::values);
                    let names: Vec<_> =
                        wanted.into_iter().flatten().map(ToString::to_string).collect();
                    let of = experiment.candidates.iter().filter(|c| names.contains(&c.name));
                    of.clone().count() > 0 && of.clone().all(|c| c.modelled)
                };
                let expected = match &claim.quantity {
                    None => ClaimKind::ByConstruction,
                    Some(_) if is_modelled(&claim.of) => ClaimKind::Model,
                    // A value with a unit, not a ratio.
                    Some(_)
                        if claim.to.is_none()
                            && !["×", "of a packet", "of the heavy keys"]
                                .contains(&claim.unit.as_str()) =>
                    {
                        ClaimKind::Absolute
                    }
                    Some(_) => continue,
                };
                assert_eq!(claim.kind, expected, "{what}");
            }
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }

    fn check_selector(what: &str, selector: &Selector, each: Option<&str>, all: &[Setting]) {
        let fit = |selector: &Selector| -> Vec<&Setting> {
            all.iter().filter(|s| selector.fits(&s.candidate, &s.parameters)).collect()
        };
        let found = fit(selector);
        assert!(!found.is_empty(), "{what}: nothing fits {selector:?}");
        // A misspelled value would be left out silently.
        for (name, values) in &selector.wanted {
            let OneOrMore::More(values) = values else { continue };
            for value in values {
                let narrowed = selector.and(name, &value.to_string());
                assert!(!fit(&narrowed).is_empty(), "{what}: nothing has {name} {value}");
            }
        }
        if selector.best.is_none() {
            let point = |s: &&Setting| each.map(|name| s.parameters.get(name).cloned());
            let points: BTreeSet<_> = found.iter().map(point).collect();
            assert_eq!(found.len(), points.len(), "{what}: {selector:?} fits several settings");
        }
    }

    #[test]
    fn experiments_are_chosen_by_id_by_group_or_all() {
        let count = |ids: &[&str]| {
            let ids: Vec<_> = ids.iter().map(|&id| id.to_owned()).collect();
            chosen(&ids).map(|found| found.len())
        };
        assert_eq!(count(&["rings/capacity"]).unwrap(), 1);
        assert_eq!(count(&["rings"]).unwrap(), 4);
        assert_eq!(count(&["all"]).unwrap(), EXPERIMENTS.len());
        assert!(count(&["rings/colour"]).unwrap_err().to_string().contains("lab list"));
    }
}
