//! The state of an interface as its driver reports it to ethtool(8). What it does not report is absent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

/// Requests to the driver of an interface: structs of `linux/ethtool.h`.
pub(crate) trait Driver {
    /// Passes a request; the driver writes its answer over it.
    fn call(&self, request: &mut [u8]) -> io::Result<()>;
}

impl Driver for ringtap_io::live::Ethtool {
    fn call(&self, request: &mut [u8]) -> io::Result<()> {
        ringtap_io::live::Ethtool::call(self, request)
    }
}

// Commands of `linux/ethtool.h`.
pub(super) const DRIVER: u32 = 0x03;
pub(super) const RINGS: u32 = 0x10;
pub(super) const SET_RINGS: u32 = 0x11;
pub(super) const STRINGS: u32 = 0x1b;
pub(super) const FIELDS: u32 = 0x29;
pub(super) const SET_FIELDS: u32 = 0x2a;
pub(super) const RULES: u32 = 0x2e;
pub(super) const FEATURES: u32 = 0x3a;
pub(super) const SET_FEATURES: u32 = 0x3b;
pub(super) const QUEUES: u32 = 0x3c;
pub(super) const SET_QUEUES: u32 = 0x3d;
pub(super) const HASH: u32 = 0x46;
pub(super) const SET_HASH: u32 = 0x47;

/// Bytes of `struct ethtool_rxnfc`.
const RXNFC: usize = 192;

/// The bytes of `struct ethtool_rxfh` before its table and its key.
const RXFH: usize = 24;

/// The names of features by the kernel, and by ethtool(8).
const OFFLOADS: [(&str, &str); 6] = [
    ("rx-gro", "gro"),
    ("rx-gro-hw", "rx-gro-hw"),
    ("rx-lro", "lro"),
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rx-ntuple-filter", "ntuple"),
    ("rx-hashing", "rxhash"),
];

/// Kinds of packets whose hashed fields can be chosen, by their numbers.
const FLOWS: [(&str, u32); 4] = [("tcp4", 1), ("udp4", 2), ("tcp6", 5), ("udp6", 6)];

/// The letters of ethtool(8) for hashed fields, and their bits.
const LETTERS: [(char, u32); 8] =
    [('m', 2), ('v', 4), ('t', 8), ('s', 16), ('d', 32), ('f', 64), ('n', 128), ('r', 1 << 31)];

/// Functions, by their bits.
const FUNCTIONS: [(&str, u8); 3] = [("toeplitz", 1), ("xor", 2), ("crc32", 4)];

#[derive(Debug, Default, Serialize)]
pub(crate) struct Card {
    pub(crate) driver: Option<String>,
    pub(crate) queues: Option<Queues>,
    pub(crate) rings: Option<Rings>,
    pub(crate) hash: Option<Hash>,
    /// Hashed fields of each kind of packets, in the letters of ethtool(8).
    pub(crate) hash_fields: BTreeMap<&'static str, String>,
    pub(crate) offloads: BTreeMap<&'static str, Offload>,
    /// Rules that send frames to a queue, past the hash.
    pub(crate) steering_rules: Option<u32>,
    /// Interrupts of its queues.
    pub(crate) interrupts: Vec<Interrupt>,
}

/// A number that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Size {
    pub(crate) now: u32,
    pub(crate) most: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct Queues {
    /// Each receives and sends.
    pub(crate) combined: Size,
    pub(crate) rx: Size,
    pub(crate) tx: Size,
}

/// Frames.
#[derive(Debug, Serialize)]
pub(crate) struct Rings {
    pub(crate) rx: Size,
    pub(crate) tx: Size,
}

/// The choice of the queue (RSS).
#[derive(Debug, Serialize)]
pub(crate) struct Hash {
    /// `None` for others than ethtool(8) names.
    pub(crate) function: Option<&'static str>,
    /// In hexadecimal digits; empty if there is none.
    pub(crate) key: String,
    /// Whether both directions of a pair have the same hash.
    pub(crate) is_symmetric: bool,
    /// Entries of the table from hashes to queues.
    pub(crate) table: usize,
    /// Queues in the table.
    pub(crate) queues: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Offload {
    pub(crate) on: bool,
    /// Cannot be changed.
    pub(crate) fixed: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interrupt {
    pub(crate) number: u32,
    pub(crate) name: String,
    /// The cores that may handle it, in the kernel's list syntax.
    pub(crate) cores: String,
}

/// A setting of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Queues that receive and send.
    Combined(u32),
    /// Queues that receive.
    RxQueues(u32),
    /// Frames of a ring for received ones.
    RxRing(u32),
    Offload(&'static str, bool),
    /// The function if it changes, and the key in hexadecimal digits.
    Key(Option<&'static str>, String),
    /// The fields of a kind of packets, in letters.
    Fields(&'static str, String),
    /// The cores of an interrupt.
    Affinity(u32, String),
}

/// A request or an answer.
struct Message(Vec<u8>);

impl Message {
    /// A request with these first words, and room for an answer of `len` bytes.
    fn new(words: &[u32], len: usize) -> Self {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(len, 0);
        Self(bytes)
    }

    fn call(mut self, driver: &dyn Driver) -> io::Result<Self> {
        driver.call(&mut self.0).map(|()| self)
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.0.get(4 * at..4 * at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    fn with(mut self, at: usize, word: u32) -> Self {
        self.0[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
        self
    }

    /// The text of up to 32 bytes that begins at a byte.
    fn text(&self, at: usize) -> String {
        let bytes = self.0.iter().skip(at).take(32).copied();
        let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The numbers of rings or queues: words of the present and the largest one.
    fn size(&self, now: usize, most: usize) -> Size {
        Size { now: self.word(now), most: self.word(most) }
    }
}

fn rings(driver: &dyn Driver) -> io::Result<Message> {
    Message::new(&[RINGS], 36).call(driver)
}

fn queues(driver: &dyn Driver) -> io::Result<Message> {
    Message::new(&[QUEUES], 36).call(driver)
}

/// The head of the answer about hashing: lengths, function and transformation.
fn hash_head(driver: &dyn Driver) -> io::Result<Message> {
    Message::new(&[HASH], RXFH).call(driver)
}

/// The number of each feature.
fn features(driver: &dyn Driver) -> io::Result<(usize, impl Fn(&str) -> Option<usize>)> {
    const NAMES: u32 = 4;
    let names = Message::new(&[STRINGS, NAMES], 12 + 32 * 256).call(driver)?;
    let count = names.word(2) as usize;
    let find = move |name: &str| (0..count).find(|number| names.text(12 + 32 * number) == name);
    Ok((count.div_ceil(32), find))
}

impl Card {
    /// The state of an interface with these interrupts.
    pub(crate) fn read(driver: &dyn Driver, interrupts: Vec<Interrupt>) -> Self {
        let fields = FLOWS.iter().filter_map(|&(flow, number)| {
            let bits = Message::new(&[FIELDS, number], RXNFC).call(driver).ok()?.word(2);
            // A driver that does not support the choice reports no field.
            (bits != 0).then(|| (flow, letters(bits)))
        });
        Self {
            driver: Message::new(&[DRIVER], 196).call(driver).ok().map(|answer| answer.text(4)),
            queues: queues(driver).ok().map(|answer| Queues {
                combined: answer.size(8, 4),
                rx: answer.size(5, 1),
                tx: answer.size(6, 2),
            }),
            rings: rings(driver)
                .ok()
                .map(|answer| Rings { rx: answer.size(5, 1), tx: answer.size(8, 4) }),
            hash: Hash::read(driver).ok().filter(|hash| !hash.key.is_empty()),
            hash_fields: fields.collect(),
            offloads: offloads(driver).unwrap_or_default(),
            steering_rules: Message::new(&[RULES], RXNFC)
                .call(driver)
                .ok()
                .map(|answer| answer.word(RXNFC / 4 - 2)),
            interrupts,
        }
    }

    /// Queues that receive.
    pub(crate) fn rx_queues(&self) -> u32 {
        self.queues.as_ref().map_or(1, |queues| queues.combined.now + queues.rx.now)
    }
}

fn offloads(driver: &dyn Driver) -> io::Result<BTreeMap<&'static str, Offload>> {
    let (blocks, find) = features(driver)?;
    let state = Message::new(&[FEATURES, blocks as u32], 8 + 16 * blocks).call(driver)?;
    let offload = |number: usize| {
        // Available, requested, active, never changed.
        let is = |word| state.word(2 + 4 * (number / 32) + word) >> (number % 32) & 1 == 1;
        Offload { on: is(2), fixed: !is(0) || is(3) }
    };
    let all = OFFLOADS.iter().filter_map(|&(kernel, name)| Some((name, offload(find(kernel)?))));
    Ok(all.collect())
}

impl Hash {
    fn read(driver: &dyn Driver) -> io::Result<Self> {
        let head = hash_head(driver)?;
        let (table, key) = (head.word(2), head.word(3));
        let len = RXFH + 4 * table as usize + key as usize;
        let answer = Message::new(&[HASH, 0, table, key], len).call(driver)?;
        let mut queues: Vec<_> = (0..table as usize).map(|at| answer.word(RXFH / 4 + at)).collect();
        queues.sort_unstable();
        queues.dedup();
        let key = &answer.0[len - key as usize..];
        let (function, transformation) = (answer.0[16], answer.0[17]);
        let function = FUNCTIONS.iter().find(|one| one.1 == function).map(|one| one.0);
        // With this period the hash stays when addresses and ports are exchanged.
        let is_periodic = key.len() > 2 && key.windows(3).all(|bytes| bytes[0] == bytes[2]);
        Ok(Self {
            function,
            key: hexadecimal(key),
            is_symmetric: transformation & 3 != 0
                || function == Some("xor")
                || function == Some("toeplitz") && is_periodic,
            table: table as usize,
            queues: queues.len(),
        })
    }
}

/// `6d:5a:…`
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let colon = if text.is_empty() { "" } else { ":" };
        let _ = write!(text, "{colon}{byte:02x}");
    }
    text
}

fn letters(bits: u32) -> String {
    LETTERS.iter().filter(|(_, bit)| bits & bit != 0).map(|(letter, _)| letter).collect()
}

/// The interrupts of an interface's queues.
pub(crate) fn interrupts(name: &str) -> Vec<Interrupt> {
    let device = Path::new("/sys/class/net").join(name).join("device");
    // A virtio device is a child of the device with the interrupts.
    let folders = ["msi_irqs", "../msi_irqs"].map(|folder| fs::read_dir(device.join(folder)));
    let names = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.file_name());
    let mut all: Vec<_> =
        names.filter_map(|name| interrupt(name.to_string_lossy().parse().ok()?)).collect();
    all.sort_by_key(|one| one.number);
    all
}

/// An interrupt, if its name is one of those that drivers give to receive queues.
fn interrupt(number: u32) -> Option<Interrupt> {
    let folder = Path::new("/proc/irq").join(number.to_string());
    let cores = fs::read_to_string(folder.join("smp_affinity_list")).ok()?.trim().to_owned();
    let folders = fs::read_dir(&folder).ok()?.flatten().filter(|entry| entry.path().is_dir());
    let name = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).next()?;
    let lower = name.to_lowercase();
    let is_of_queue = ["rx", "input", "comp"].iter().any(|word| lower.contains(word));
    is_of_queue.then_some(Interrupt { number, name, cores })
}

impl Setting {
    /// The command that sets it.
    pub(crate) fn command(&self, interface: &str) -> String {
        let on = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Self::Combined(number) => format!("ethtool -L {interface} combined {number}"),
            Self::RxQueues(number) => format!("ethtool -L {interface} rx {number}"),
            Self::RxRing(frames) => format!("ethtool -G {interface} rx {frames}"),
            Self::Offload(name, is) => format!("ethtool -K {interface} {name} {}", on(is)),
            Self::Key(function, key) => {
                let function = function.map_or(String::new(), |name| format!("hfunc {name} "));
                format!("ethtool -X {interface} {function}hkey {key}")
            }
            Self::Fields(flow, fields) => {
                format!("ethtool -N {interface} rx-flow-hash {flow} {fields}")
            }
            Self::Affinity(interrupt, cores) => {
                format!("echo {cores} > /proc/irq/{interrupt}/smp_affinity_list")
            }
        }
    }

    /// What follows if the driver refuses it.
    pub(super) fn if_refused(&self) -> &'static str {
        match self {
            Self::Key(..) | Self::Fields(..) => {
                "; --capture af-xdp then needs one queue (--queues 1)"
            }
            _ => "",
        }
    }

    /// Sets it.
    pub(crate) fn set(&self, driver: &dyn Driver) -> io::Result<()> {
        let request = match self {
            Self::Combined(number) => queues(driver)?.with(0, SET_QUEUES).with(8, *number),
            Self::RxQueues(number) => queues(driver)?.with(0, SET_QUEUES).with(5, *number),
            Self::RxRing(frames) => rings(driver)?.with(0, SET_RINGS).with(5, *frames),
            Self::Offload(name, is) => {
                let (blocks, find) = features(driver)?;
                let kernel = OFFLOADS.iter().find(|one| one.1 == *name).map_or(*name, |one| one.0);
                let number = find(kernel).ok_or(io::ErrorKind::Unsupported)?;
                let (at, bit) = (2 + 2 * (number / 32), 1 << (number % 32));
                let request = Message::new(&[SET_FEATURES, blocks as u32], 8 + 8 * blocks);
                request.with(at, bit).with(at + 1, if *is { bit } else { 0 })
            }
            Self::Key(function, key) => {
                const NO_TABLE: u32 = u32::MAX;
                let key: Vec<_> =
                    key.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
                let words = [SET_HASH, 0, NO_TABLE, key.len() as u32];
                let mut request = Message::new(&words, RXFH);
                // Some drivers refuse a function, even that which they have.
                let function = FUNCTIONS.iter().find(|one| Some(one.0) == *function);
                request.0[16] = function.map_or(0, |one| one.1);
                request.0[17] = hash_head(driver)?.0[17];
                request.0.extend(key);
                request
            }
            Self::Fields(flow, fields) => {
                let number = FLOWS.iter().find(|one| one.0 == *flow).map_or(0, |one| one.1);
                let bits = LETTERS.iter().filter(|one| fields.contains(one.0));
                Message::new(&[SET_FIELDS, number, bits.map(|one| one.1).sum()], RXNFC)
            }
            Self::Affinity(interrupt, cores) => {
                return fs::write(format!("/proc/irq/{interrupt}/smp_affinity_list"), cores);
            }
        };
        request.call(driver).map(drop)
    }
}
