//! The live page, before the run.

use std::net::SocketAddr;
use std::path::Path;

use ringtap_base::least_multiple;
use ringtap_monitor::PAGE_NS;
use ringtap_serve::{Certificate, Listening};
use ringtap_store::Layout;
use ringtap_terminal::{Usage, console};

use crate::args::MonitorArgs;
use crate::query::helper;
use crate::web;

const SECOND: u64 = 1_000_000_000;

/// Its address and its guard.
pub(super) struct Page {
    pub(super) listening: Listening,
    pub(super) access: web::Access,
    pub(super) store: Option<web::Store>,
    /// If its connections are encrypted.
    pub(super) certificate: Option<Certificate>,
}

/// The certificate of a page.
pub(super) fn read_certificate(certificate: &Path, key: &Path) -> anyhow::Result<Certificate> {
    Certificate::read(("--tls-cert", certificate), ("--tls-key", key)).map_err(Usage::of)
}

/// Starts the process that reads the store of the run for its page, if there are both.
pub(super) fn start_helper(
    args: &MonitorArgs,
    layout: Option<&Layout>,
) -> anyhow::Result<Option<web::Store>> {
    let Some(layout) = layout.filter(|_| args.web.is_some()) else { return Ok(None) };
    let probe = args.probe_name();
    let helper = helper::start(&layout.root, &probe, args.user.as_deref())?;
    let path = layout.root.display().to_string();
    let rotate_s = layout.rotate_s;
    // With states, slices divide the interval.
    let times = [args.cut, args.interval, Some(PAGE_NS)].into_iter().flatten();
    let seconds = times.map(|ns| ns.div_ceil(SECOND));
    let files = web::Files { rotate_s, joint_s: seconds.fold(rotate_s, least_multiple) };
    Ok(Some(web::Store { path, probe, files, helper }))
}

impl Page {
    pub(super) fn open(address: SocketAddr, args: &MonitorArgs) -> anyhow::Result<Self> {
        let access = web::Access::new(address, args.web_token.as_deref())?;
        let mut listening = Listening::at("--web", address)?;
        let mut used = None;
        if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
            let own = read_certificate(certificate, key)?;
            listening = listening.with_tls(own.clone());
            used = Some(own);
        }
        if let (Some(url), false) = (listening.url(), args.quiet) {
            console::note(&format!("page: {url}"));
        }
        Ok(Self { listening, access, store: None, certificate: used })
    }

    /// The same page; it may ask the store.
    pub(super) fn with_store(self, store: Option<web::Store>) -> Self {
        Self { store, ..self }
    }
}
