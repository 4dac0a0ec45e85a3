//! The rules against recorded answers of drivers, `recorded/*.txt`. A line has a command and perhaps a kind of packets, then
//! the answer behind the command: words of 32 bits, `"texts"` of 32 bytes, `0..3` for words that count, `*N` for N times.
//! `refuse` is the error of a command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::card::*;
use super::{Interface, Wanted, units};

/// A command, and the kind of packets for those that have one.
type Key = (u32, u32);

/// A driver that answers as recorded, and keeps what is set.
#[derive(Clone)]
struct Recorded {
    /// Shared by all clones.
    answers: Rc<RefCell<BTreeMap<Key, Vec<u8>>>>,
    refused: BTreeMap<Key, i32>,
    /// Commands that have no effect.
    ignored: Vec<u32>,
}

/// Features by their numbers, as in Linux 6.18.
const FEATURE_NAMES: [(usize, &str); 6] = [
    (8, "rx-vlan-hw-parse"),
    (14, "rx-gro"),
    (15, "rx-lro"),
    (38, "rx-ntuple-filter"),
    (39, "rx-hashing"),
    (55, "rx-gro-hw"),
];

fn number(word: &str) -> u32 {
    let parsed = word.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    parsed.unwrap_or_else(|| word.parse()).unwrap_or_else(|error| panic!("{word}: {error}"))
}

fn words(word: &str) -> Vec<u8> {
    if let Some(text) = word.strip_prefix('"') {
        let mut bytes = text.trim_end_matches('"').as_bytes().to_vec();
        bytes.resize(32, 0);
        return bytes;
    }
    let (word, times) = word.split_once('*').unwrap_or((word, "1"));
    let (first, last) = word.split_once("..").unwrap_or((word, word));
    let once = (number(first)..=number(last)).flat_map(u32::to_ne_bytes).collect::<Vec<_>>();
    once.repeat(number(times) as usize)
}

impl Recorded {
    fn new(text: &str) -> Self {
        let answers = Rc::default();
        let mut driver = Self { answers, refused: BTreeMap::new(), ignored: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (key, answer) = line.split_once(" = ").unwrap_or((line, ""));
            let mut numbers =
                key.split(' ').filter(|word| word.as_bytes()[0] == b'0' || word.len() == 1);
            let key = (number(numbers.next().unwrap()), numbers.next().map_or(0, number));
            if line.starts_with("refuse ") {
                driver.refused.insert(key, answer.parse().unwrap());
            } else {
                let answer = answer.split(' ').flat_map(words).collect();
                driver.answers.borrow_mut().insert(key, answer);
            }
        }
        driver
    }

    fn interface(&self, queues: u32, cores: usize) -> Interface {
        let wanted = Wanted { queues, cores: (0..cores).collect() };
        let driver = Box::new(self.clone());
        Interface { name: "eth0".into(), driver, interrupts: |_| Vec::new(), wanted }
    }
}

impl Driver for Recorded {
    fn call(&self, request: &mut [u8]) -> io::Result<()> {
        let word = |at: usize| u32::from_ne_bytes(request[4 * at..4 * at + 4].try_into().unwrap());
        let command = word(0);
        let (get, is_set) = match command {
            SET_RINGS | SET_QUEUES | SET_FIELDS | SET_FEATURES | SET_HASH => (command - 1, true),
            get => (get, false),
        };
        let kind = if get == FIELDS { word(1) } else { 0 };
        if let Some(error) = self.refused.get(&(command, kind)) {
            return Err(io::Error::from_raw_os_error(*error));
        }
        if command == STRINGS {
            request[8..12].copy_from_slice(&64_u32.to_ne_bytes());
            for (at, name) in FEATURE_NAMES {
                request[12 + 32 * at..][..name.len()].copy_from_slice(name.as_bytes());
            }
            return Ok(());
        }
        let mut answers = self.answers.borrow_mut();
        let answer = answers.get_mut(&(get, kind)).ok_or(io::ErrorKind::Unsupported)?;
        if self.ignored.contains(&command) {
            return Ok(());
        }
        match command {
            SET_RINGS | SET_QUEUES | SET_FIELDS => {
                let len = answer.len();
                answer.copy_from_slice(&request[4..4 + len]);
            }
            SET_FEATURES => {
                for block in 0..2 {
                    let (valid, wanted) = (word(2 + 2 * block), word(3 + 2 * block));
                    let active = &mut answer[16 * block + 12..][..4];
                    let before = u32::from_ne_bytes((&*active).try_into().unwrap());
                    active.copy_from_slice(&(before & !valid | wanted & valid).to_ne_bytes());
                }
            }
            SET_HASH => {
                assert_eq!((word(2), request.len()), (u32::MAX, 24 + word(3) as usize));
                if request[16] != 0 {
                    answer[12] = request[16];
                }
                let key = answer.len() - word(3) as usize;
                answer[key..].copy_from_slice(&request[24..]);
            }
            _ => {
                let len = answer.len().min(request.len() - 4);
                request[4..4 + len].copy_from_slice(&answer[..len]);
            }
        }
        assert!(is_set || command == get);
        Ok(())
    }
}

const IXGBE: &str = include_str!("recorded/ixgbe.txt");
const I40E: &str = include_str!("recorded/i40e.txt");
const MLX5: &str = include_str!("recorded/mlx5.txt");
const VIRTIO_NET: &str = include_str!("recorded/virtio_net.txt");
const VETH: &str = include_str!("recorded/veth.txt");

/// The commands advised for a driver's card.
fn advised(recorded: &str, queues: u32) -> Vec<String> {
    let advice = Recorded::new(recorded).interface(queues, 4).read().1;
    advice.into_iter().map(|advice| advice.command).collect()
}

fn symmetric(len: usize) -> String {
    vec!["6d:5a"; len / 2].join(":")
}

#[test]
fn the_state_of_cards_is_read() {
    let card = |recorded| Card::read(&Recorded::new(recorded), Vec::new());
    let card_of = |recorded| serde_json::to_value(card(recorded)).unwrap();
    let ixgbe = card_of(IXGBE);
    assert_eq!(ixgbe["driver"], "ixgbe");
    assert_eq!(ixgbe["queues"]["combined"], serde_json::json!({"now": 16, "most": 63}));
    assert_eq!(ixgbe["rings"]["rx"], serde_json::json!({"now": 512, "most": 4096}));
    assert_eq!(ixgbe["hash"]["function"], "toeplitz");
    assert_eq!((&ixgbe["hash"]["table"], &ixgbe["hash"]["queues"]), (&128.into(), &16.into()));
    assert!(ixgbe["hash"]["key"].as_str().unwrap().starts_with("2c:c6:81:d1:5b:db:"));
    assert_eq!(ixgbe["hash"]["is_symmetric"], false);
    let fields = serde_json::json!({"tcp4": "sdfn", "udp4": "sd", "tcp6": "sdfn", "udp6": "sd"});
    assert_eq!(ixgbe["hash_fields"], fields);
    assert_eq!(ixgbe["offloads"]["lro"], serde_json::json!({"on": true, "fixed": false}));
    assert_eq!(ixgbe["offloads"]["rx-gro-hw"], serde_json::json!({"on": false, "fixed": true}));
    assert_eq!((card(I40E).steering_rules, card(IXGBE).steering_rules), (Some(2), Some(0)));
    let virtio = card(VIRTIO_NET);
    assert!(virtio.hash.is_none() && virtio.hash_fields.is_empty());
    assert_eq!((virtio.rx_queues(), virtio.steering_rules), (1, None));
    let host_joins = virtio.offloads["rx-gro-hw"];
    assert!(host_joins.on && host_joins.fixed);
    let veth = card(VETH);
    assert!(veth.rings.is_none() && veth.hash.is_none());
    assert_eq!(veth.rx_queues(), 4);
}

#[test]
fn each_card_gets_the_commands_that_improve_it() {
    let key = symmetric(40);
    let mut expected = vec!["-L eth0 combined 8", "-G eth0 rx 4096", "-K eth0 lro off"];
    let hash = format!("-X eth0 hkey {key}");
    expected.extend(["-K eth0 gro off", "-K eth0 rxvlan off", &hash]);
    expected.extend(["-N eth0 rx-flow-hash tcp4 sd", "-N eth0 rx-flow-hash tcp6 sd"]);
    let expected: Vec<_> = expected.iter().map(|words| format!("ethtool {words}")).collect();
    assert_eq!(advised(IXGBE, 8), expected);
    let i40e = advised(I40E, 4);
    assert!(i40e.contains(&format!("ethtool -X eth0 hkey {}", symmetric(52))), "{i40e:?}");
    assert_eq!(i40e.iter().filter(|line| line.contains("rx-flow-hash")).count(), 4);
    assert!(!i40e.iter().any(|line| line.contains("-L") || line.contains("lro")), "{i40e:?}");
    let mlx5 = advised(MLX5, 64);
    assert!(mlx5[..2] == ["ethtool -G eth0 rx 4096", "ethtool -K eth0 rx-gro-hw off"], "{mlx5:?}");
    assert_eq!(advised(VIRTIO_NET, 4), ["ethtool -K eth0 gro off"]);
    assert_eq!(advised(VETH, 2), ["ethtool -K eth0 rxvlan off"], "a veth keeps its queues");
    let fewer = VETH.replace("4 4 0 0 4 4", "4 4 0 0 1 4");
    assert_eq!(advised(&fewer, 2)[0], "ethtool -L eth0 rx 2");
}

#[test]
fn one_queue_needs_no_hash() {
    let one = advised(IXGBE, 1);
    assert_eq!(one[0], "ethtool -L eth0 combined 1");
    let driver = Recorded::new(IXGBE);
    let interface = driver.interface(1, 4);
    let made = interface.apply(|step| assert_eq!(step.error, None));
    let is_of_hash = |one: &Setting| matches!(one, Setting::Key(..) | Setting::Fields(..));
    assert!(made.len() == 5 && !made.iter().any(|change| is_of_hash(&change.to)), "{made:?}");
}

#[test]
fn hashes_are_symmetric_by_key_function_or_transformation() {
    let is_symmetric =
        |text: &str| Card::read(&Recorded::new(text), Vec::new()).hash.unwrap().is_symmetric;
    let key = MLX5.split("0..7*16 ").nth(1).unwrap().lines().next().unwrap();
    assert!(is_symmetric(&MLX5.replace(key, "0x5a6d5a6d*10")));
    // Of another period.
    assert!(!is_symmetric(&MLX5.replace(key, "0x5b6d5a6d*10")));
    assert!(is_symmetric(&MLX5.replace("= 0 128 40 1 ", "= 0 128 40 2 ")), "exclusive or");
    assert!(!is_symmetric(&MLX5.replace("= 0 128 40 1 ", "= 0 128 40 4 ")), "a CRC");
    assert!(is_symmetric(&MLX5.replace("= 0 128 40 1 ", "= 0 128 40 0x101 ")), "symmetric-xor");
    let crc = MLX5.replace("= 0 128 40 1 ", "= 0 128 40 4 ");
    let advice = Recorded::new(&crc).interface(8, 4).read().1;
    let hash = advice.iter().find(|advice| advice.command.contains(" -X ")).unwrap();
    let key = symmetric(40);
    assert_eq!(hash.command, format!("ethtool -X eth0 hfunc toeplitz hkey {key}"));
    assert!(
        hash.undo.starts_with("ethtool -X eth0 hfunc crc32 hkey 6a:2b:5c:1f:"),
        "{}",
        hash.undo
    );
}

#[test]
fn changes_are_made_and_undone() {
    let crc = MLX5.replace("= 0 128 40 1 ", "= 0 128 40 4 ");
    for recorded in [IXGBE, I40E, MLX5, &crc, VIRTIO_NET, VETH] {
        let driver = Recorded::new(recorded);
        let before = driver.answers.borrow().clone();
        let interface = driver.interface(3, 4);
        let mut refused = Vec::new();
        let made = interface.apply(|step| refused.extend(step.error.map(|_| step.advice.command)));
        let left: Vec<_> = interface.read().1.into_iter().map(|advice| advice.command).collect();
        assert_eq!(left, refused, "what the driver refuses is said, and the rest is done");
        assert_eq!(refused.len(), if recorded == IXGBE { 2 } else { 0 }, "{refused:?}");
        assert!(!made.is_empty() && *driver.answers.borrow() != before);
        let mut undone = Vec::new();
        interface.undo(&made, |step| {
            assert_eq!(step.error, None);
            undone.push(step.advice.command);
        });
        assert_eq!(*driver.answers.borrow(), before, "{undone:?}");
        let orders = made.iter().rev().map(|change| change.from.command("eth0"));
        assert_eq!(undone, orders.collect::<Vec<_>>());
    }
}

#[test]
fn a_change_without_effect_is_said() {
    let driver = Recorded { ignored: vec![SET_RINGS], ..Recorded::new(MLX5) };
    let mut errors = Vec::new();
    driver.interface(8, 4).apply(|step| errors.extend(step.error));
    assert_eq!(errors, ["accepted without effect"]);
    let mut errors = Vec::new();
    Recorded::new(IXGBE).interface(8, 4).apply(|step| errors.extend(step.error));
    assert!(errors[0].starts_with("refused: Invalid argument"), "{errors:?}");
    assert!(errors[0].ends_with("needs one queue (--queues 1)"), "{errors:?}");
}

#[test]
fn interrupts_of_queues_get_near_cores_of_their_own() {
    let advised = |now: &[&str]| {
        let interrupts = (40..).zip(now).map(|(number, cores)| Interrupt {
            number,
            name: format!("eth0-TxRx-{number}"),
            cores: (*cores).to_owned(),
        });
        let card = Card::read(&Recorded::new(VETH), interrupts.collect());
        let wanted = Wanted { queues: 4, cores: vec![2, 3] };
        let changes = super::changes(&card, &wanted).into_iter();
        let commands = changes.map(|change| (change.to.command("eth0"), change.from));
        commands.filter(|(command, _)| command.starts_with("echo")).collect::<Vec<_>>()
    };
    let all = advised(&["0-3", "3", "0-3"]);
    let commands: Vec<_> = all.iter().map(|(command, _)| command.as_str()).collect();
    let file = |number| format!("/proc/irq/{number}/smp_affinity_list");
    assert_eq!(commands, [format!("echo 2 > {}", file(40)), format!("echo 2 > {}", file(42))]);
    assert_eq!(all[0].1, Setting::Affinity(40, "0-3".into()));
    assert_eq!(advised(&["3", "2", "3"]), [], "in any order");
    assert_eq!(advised(&["3", "3"]).len(), 1);
    assert_eq!(advised(&["0-3"]), [], "one queue");
    assert_eq!(units::cores("0-2,8").unwrap().0, [0, 1, 2, 8]);
    assert!(units::cores("").is_err());
}
