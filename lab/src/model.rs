//! A model that continues a figure beyond the cores of this machine. Its values are not
//! measurements.
//!
//! The slowest stage of a farm limits the rate. The dispatcher spends `d` on an item and `r` on
//! pushing it into a ring; each of n workers spends `w` and `r` on an n-th of the items; all share
//! the memory bandwidth:
//!
//! ```text
//!   rate(n) = 1 / max( d + r , (w + r) / n , bytes / bandwidth )
//!   w = whole − d        whole: one thread that does all work
//! ```
//!
//! All inputs are medians of the same run. A dispatcher that alone takes longer than one thread that
//! does all work contradicts the model, and no curve is drawn. The model ignores shared caches, lower clock rates when
//! all cores are busy, and rings between packages.

use crate::experiment::{Model, Selector};
use crate::rows::{Row, State};
use crate::statistics;

/// Pairs of number of workers and rate.
pub(crate) type Curve = Vec<(f64, f64)>;

/// The curve from one worker to `model.up_to`. The error says why there is none: an input was not
/// measured, or a part takes longer than the whole.
pub(crate) fn curve(model: &Model, rows: &[Row]) -> Result<Curve, String> {
    let seconds = |name: &str, selector: &Selector, quantity: &str| {
        let values: Vec<f64> = rows
            .iter()
            .filter(|row| row.state == State::Ok && row.quantity == quantity)
            .filter(|row| selector.fits(&row.candidate, &row.parameters))
            .filter_map(|row| row.value)
            .collect();
        let rate = statistics::median(&values);
        rate.map(|rate| 1.0 / rate).ok_or_else(|| format!("{name} was not measured"))
    };
    let whole = seconds("one thread", &model.whole, &model.quantity)?;
    let dispatch = seconds("the dispatcher", &model.dispatch, &model.quantity)?;
    let ring = seconds("the ring", &model.ring, &model.ring_quantity)?;
    let bandwidth = seconds("the memory", &model.bandwidth, &model.bandwidth_quantity)?;
    let memory = model.bytes * bandwidth;
    let work = whole - dispatch;
    if work < 0.0 {
        return Err(format!(
            "the dispatcher alone takes {:.0} ns an item, longer than one thread that does all work ({:.0} ns)",
            dispatch * 1e9,
            whole * 1e9
        ));
    }
    let rate = |workers: u32| {
        let n = f64::from(workers);
        (n, 1.0 / (dispatch + ring).max((work + ring) / n).max(memory))
    };
    Ok((1..=model.up_to).map(rate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;

    #[test]
    fn the_slowest_stage_limits_the_rate() {
        let model: Model = toml::from_str(
            "text = 't'\nquantity = 'v'\nworkers = 'n'\nup_to = 4\nbytes = 64.0\n\
             whole = { candidate = 'whole' }\ndispatch = { candidate = 'dispatch' }\n\
             ring = { candidate = 'ring' }\nbandwidth = { candidate = 'memory' }\n\
             ring_quantity = 'v'\nbandwidth_quantity = 'v'",
        )
        .unwrap();
        // An item takes 100 ns, 20 of them in the dispatcher; a ring takes 5 ns, 64 bytes of memory
        // 26 ns.
        let rows = [("whole", 1e7), ("dispatch", 5e7), ("ring", 2e8), ("memory", 64.0 / 26e-9)];
        let rows = rows.map(|(name, rate)| row(name, 1, rate));
        let times: Vec<_> = curve(&model, &rows)
            .unwrap()
            .into_iter()
            .map(|(n, rate)| (n as u32, (1e9 / rate).round() as u32))
            .collect();
        assert_eq!(times, [(1, 85), (2, 43), (3, 28), (4, 26)]);
        assert_eq!(curve(&model, &rows[1..]), Err("one thread was not measured".into()));
        let mut slow = rows;
        slow[1].value = Some(9e6);
        let error = curve(&model, &slow).unwrap_err();
        assert!(error.contains("takes 111 ns") && error.contains("(100 ns)"), "{error}");
    }
}
