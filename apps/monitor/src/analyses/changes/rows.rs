//! The section of changes.

use std::net::IpAddr;

use ringtap_enrich::Stage;
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use serde::Serialize;

use crate::alerts::Service;
use crate::analyses::analysis::{About, Section};
use crate::time::Time;
use crate::volume::is_zero;

/// Most rows of a list, and of its text.
const LISTED: usize = 10_000;
const SHOWN: usize = 20;

/// What was new of the user's own hosts, in the order in which it was reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Devices that sent for the first time.
    pub new_devices: Vec<NewDevice>,
    /// Ports on which hosts answered for the first time.
    pub new_server_ports: Vec<NewServerPort>,
    /// Intervals in which hosts exchanged much more than before.
    pub volume_changes: Vec<VolumeChange>,
    /// Rows beyond 10,000 of a list.
    #[serde(skip_serializing_if = "is_zero")]
    pub further: u64,
    /// How often hosts, ports and volumes had no room in memory: each once an interval.
    #[serde(skip_serializing_if = "is_zero")]
    pub ignored: u64,
}

/// A new device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewDevice {
    /// The begin of the first flow in which it sent.
    pub first: Time,
    /// Its address.
    pub host: IpAddr,
}

/// A port of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewServerPort {
    /// The begin of the first flow that it answered.
    pub first: Time,
    /// The host.
    pub host: IpAddr,
    /// Protocol and port.
    pub service: Service,
}

/// A host in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeChange {
    /// The begin of the interval.
    pub start: Time,
    /// The host.
    pub host: IpAddr,
    /// Octets that it sent and received.
    pub octets: u64,
    /// The median of the intervals before.
    pub median: u64,
}

/// Adds a row if there is room for it in the report.
pub(super) fn list<T>(rows: &mut Vec<T>, further: &mut u64, row: T) {
    if rows.len() < LISTED {
        rows.push(row);
    } else {
        *further += 1;
    }
}

impl Section for Changes {
    fn pass(&mut self, stage: &mut Stage) {
        self.new_devices.iter_mut().for_each(|row| stage.replace(&mut row.host));
        self.new_server_ports.iter_mut().for_each(|row| stage.replace(&mut row.host));
        self.volume_changes.iter_mut().for_each(|row| stage.replace(&mut row.host));
        if stage.replaces() {
            self.new_devices.sort_by_key(|row| (row.first, row.host));
            self.new_server_ports.sort_by_key(|row| (row.first, row.host, row.service));
            self.volume_changes.sort_by_key(|row| (row.start, row.host));
        }
    }

    fn show(&self, page: &mut Page, about: &About) {
        let mut table = Table::with_head(&[("host", Left), ("first", Left)]);
        for row in self.new_devices.iter().take(SHOWN) {
            table.row([row.host.to_string(), about.times.short(row.first)]);
        }
        show(page, "New devices", table, self.new_devices.len());
        let mut table = Table::with_head(&[("host", Left), ("port", Left), ("first", Left)]);
        for row in self.new_server_ports.iter().take(SHOWN) {
            table.row([
                row.host.to_string(),
                row.service.to_string(),
                about.times.short(row.first),
            ]);
        }
        show(page, "New server ports", table, self.new_server_ports.len());
        let head = [("host", Left), ("interval", Left), ("octets", Right), ("median", Right)];
        let mut table = Table::with_head(&head);
        for row in self.volume_changes.iter().take(SHOWN) {
            table.row([
                row.host.to_string().into(),
                about.times.short(row.start).into(),
                Cell::bytes(row.octets),
                Cell::bytes(row.median),
            ]);
        }
        show(page, "Changed volumes", table, self.volume_changes.len());
    }
}

fn show(page: &mut Page, title: &str, table: Table, rows: usize) {
    if rows == 0 {
        return;
    }
    page.heading(title);
    page.table(table);
    if rows > SHOWN {
        page.line(&format!("and {} more", count((rows - SHOWN) as u64)));
    }
}
