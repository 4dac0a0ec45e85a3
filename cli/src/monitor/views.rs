//! The views of a run: the console, the terminal, the page, metrics.

use std::sync::{Arc, Mutex, PoisonError};

use ringtap_engine::Plan;
use ringtap_export::{Alerts, Handle};
use ringtap_flow::Sinks;
use ringtap_monitor::state::OnPart;
use ringtap_monitor::{OnInterval, Options, Receivers};
use ringtap_serve::{Listening, Serving};

use super::page::Page;
use super::source::WATCH;
use super::store::Totals;
use crate::alerts::notice;
use crate::args::MonitorArgs;
use crate::console::{Console, Extent};
use crate::metrics::Metrics;
use crate::screen::Screen;
use crate::text;
use crate::web::{self, Web};

/// What shows the run while it goes on.
pub(super) struct Views {
    pub(super) console: Arc<Console>,
    /// The page and the metrics, until this is dropped.
    _served: [Option<Serving>; 2],
}

impl Views {
    /// Opens the views. `sinks` pass records on to the page.
    pub(super) fn open(
        args: &MonitorArgs,
        plan: &Plan<Options>,
        interfaces: &[String],
        extent: Extent,
        outputs: Handle,
        (page, metrics): (Option<Page>, Option<Listening>),
        sinks: &mut [Sinks],
    ) -> anyhow::Result<Self> {
        let sources = plan.options.source.join(", ");
        let title = format!("{sources}, {}", text::seats(plan));
        let (queues, threads) = (plan.arrangement.queues, text::threads(plan));
        let max_flows = plan.app.max_flows();
        let slice_ns = plan.app.slice_ns().unwrap_or(0);
        let screen = args.tui.then(|| {
            let recent = web::Recent::new(sinks, slice_ns);
            Screen::open(title, queues, max_flows, threads.clone(), recent)
        });
        let parts = page.is_some().then(|| web::parts(sinks, slice_ns));
        let reporter = parts.as_ref().map(|parts| parts.reporter.clone());
        let screen = screen.transpose()?;
        let console = Console::new(args, plan, &WATCH, extent, screen, reporter, outputs);
        let console = Arc::new(console);
        let numbers = || {
            let console = Arc::clone(&console);
            Metrics::new(&WATCH, queues, interfaces, move || console.run_stats())
        };
        let metrics = metrics
            .map(|listening| {
                let numbers = numbers();
                listening.serve_metrics(move || numbers.reply())
            })
            .transpose()?;
        let page = page.zip(parts).map(|(page, parts)| {
            let (is_live, measures_tcp) = (plan.options.live, plan.app.analyses.tcp);
            let idle_ns = plan.app.metering.timeouts.longest_idle_ns();
            let enrichment = &plan.app.enrichment;
            let about = web::About {
                title: sources,
                is_live,
                measures_tcp,
                has_networks: enrichment.networks.is_some(),
                has_geo: enrichment.geo.is_some(),
                max_flows,
                threads,
                idle_ns,
            };
            let web = Web::new(about, page.access, numbers(), &WATCH, parts, page.store)?;
            page.listening.serve("web", web)
        });
        let _served = [metrics, page.transpose()?];
        Ok(Self { console, _served })
    }

    /// What the merger hands over during the run.
    pub(super) fn receivers(
        &self,
        part: Option<OnPart>,
        mut outputs: Alerts,
        live: bool,
        kept: Option<Arc<Mutex<Totals>>>,
    ) -> Receivers {
        let [alerts, intervals, totals] = [(); 3].map(|()| Arc::clone(&self.console));
        let has_intervals = live || kept.is_some();
        let on_interval: OnInterval = Box::new(move |ended| {
            if live {
                intervals.interval(ended);
            }
            if let Some(kept) = &kept {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.send(ended.interval, Some(ended.live));
            }
        });
        Receivers {
            part,
            alert: Some(Box::new(move |alert| {
                alerts.alert(alert);
                if !outputs.is_empty() {
                    outputs.send(&notice(alert));
                }
            })),
            interval: has_intervals.then_some(on_interval),
            totals: Some(Box::new(move |now| totals.totals(now))),
        }
    }
}
