//! The live page, before the run.

use std::net::SocketAddr;

use ringtap_serve::Listening;
use ringtap_terminal::{Usage, console};

use crate::args::MonitorArgs;
use crate::web;

/// Its address and its guard.
pub(super) struct Page {
    pub(super) listening: Listening,
    pub(super) access: web::Access,
}

impl Page {
    pub(super) fn open(address: SocketAddr, args: &MonitorArgs) -> anyhow::Result<Self> {
        let access = web::Access::new(address, args.web_token.as_deref())?;
        let mut listening = Listening::at("--web", address)?;
        if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
            let files = [("--tls-cert", &**certificate), ("--tls-key", &**key)];
            listening = listening.with_tls(files[0], files[1]).map_err(Usage::of)?;
        }
        if let (Some(url), false) = (listening.url(), args.quiet) {
            console::note(&format!("page: {url}"));
        }
        Ok(Self { listening, access })
    }
}
