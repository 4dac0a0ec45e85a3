//! The results of trials as CSV: a line for each number, with its provenance.
//!
//! ```text
//! experiment,candidate,PARAMETERS…,quantity,value,unit,trial,status,reason,result,load,seconds,cpu_seconds,commit,program,machine,seed,command
//! ```
//!
//! Lines are appended when a trial ends, in one write, so an interrupted run loses at most one
//! trial: an incomplete last line is dropped when the file is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::settings::Setting;

const BEFORE: [&str; 2] = ["experiment", "candidate"];
const AFTER: [&str; 15] = [
    "quantity",
    "value",
    "unit",
    "trial",
    "status",
    "reason",
    "result",
    "load",
    "seconds",
    "cpu_seconds",
    "commit",
    "program",
    "machine",
    "seed",
    "command",
];

/// One number of one trial, or the reason for its absence.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Id of the experiment.
    pub experiment: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Values of the parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// Empty in the row of a trial without numbers.
    pub quantity: String,
    /// The measured value, if the trial succeeded.
    pub value: Option<f64>,
    /// Unit of the value.
    pub unit: String,
    /// Round, from 1; 0 is checked but not counted.
    pub trial: u32,
    /// Outcome of the trial.
    pub state: State,
    /// The reason for a state other than `Ok`.
    pub reason: String,
    /// A hash of the parts of the report that must be equal between trials.
    pub result: String,
    /// System load, averaged over the minute before the trial.
    pub load: f64,
    /// Run time of the trial; `None` without a value, and in rows of early runs.
    pub seconds: Option<f64>,
    /// User and system time of its processes; `None` as above.
    pub cpu_seconds: Option<f64>,
    /// Commit of the measured program; empty for a program of others.
    pub commit: String,
    /// The first 16 hexadecimal digits of the SHA-256 of its file; empty in rows of early runs.
    pub program: String,
    /// Name of the machine.
    pub machine: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Command line of the trial.
    pub command: String,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The trial succeeded.
    Ok,
    /// The trial ran with more threads than cores, so its values do not measure scaling.
    Oversubscribed,
    /// Its result differs from that of the other trials.
    Wrong,
    /// The program failed.
    Failed,
    /// The machine lacks something that the trial requires.
    NotPossible,
    /// Something else used the machine during the trial (`quiet`). Its values are kept, not used.
    Disturbed,
    /// Its value is predicted from a trial on one core.
    Predicted,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Ok,
        Self::Oversubscribed,
        Self::Wrong,
        Self::Failed,
        Self::NotPossible,
        Self::Disturbed,
        Self::Predicted,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Oversubscribed => "oversubscribed",
            Self::Wrong => "wrong",
            Self::Failed => "failed",
            Self::NotPossible => "not-possible",
            Self::Disturbed => "disturbed",
            Self::Predicted => "predicted",
        }
    }

    /// Whether a row in this state has a value to show.
    pub fn has_value(self) -> bool {
        matches!(self, Self::Ok | Self::Oversubscribed | Self::Predicted)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rows of one experiment in a run, in memory and in a file.
pub(crate) struct RowFile {
    path: PathBuf,
    parameters: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl RowFile {
    /// Opens the file at `path` and reads its rows. Without a file, the first [`add`](Self::add)
    /// creates it.
    pub(crate) fn open(path: PathBuf, settings: &[Setting]) -> Result<Self, LabError> {
        let names: BTreeSet<&String> = settings.iter().flat_map(|s| s.parameters.keys()).collect();
        let parameters: Vec<String> = names.into_iter().cloned().collect();
        let error = |reason: &str| LabError::Rows { path: path.clone(), reason: reason.into() };
        if let Some(name) = parameters.iter().find(|name| is_fixed(name)) {
            return Err(error(&format!("invalid parameter {name:?}: every file has this column")));
        }
        let rows = if path.exists() {
            cut_unfinished(&path)?;
            let (found, rows) = read(&path)?;
            if found != parameters {
                return Err(error("belongs to another version of the experiment: move it away"));
            }
            rows
        } else {
            Vec::new()
        };
        Ok(Self { path, parameters, rows })
    }

    /// Appends the rows of a trial.
    pub(crate) fn add(&mut self, rows: Vec<Row>) -> Result<(), LabError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let failed = |error: &dyn fmt::Display| LabError::Rows {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        if fs::metadata(&self.path).map_or(true, |data| data.len() == 0) {
            let names = self.parameters.iter().map(String::as_str);
            let header = BEFORE.into_iter().chain(names).chain(AFTER);
            writer.write_record(header).map_err(|error| failed(&error))?;
        }
        for row in &rows {
            writer.write_record(self.fields(row)).map_err(|error| failed(&error))?;
        }
        let lines = writer.into_inner().map_err(|error| failed(&error))?;
        let doing = "writing";
        let append = || {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
            let before = file.metadata()?.len();
            file.write_all(&lines).inspect_err(|_| {
                // Remove the part that was written. If this fails too, the incomplete line is
                // dropped when the file is opened.
                let _ = file.set_len(before);
            })
        };
        append().map_err(LabError::io(doing, &self.path))?;
        self.rows.extend(rows);
        Ok(())
    }

    /// Appends a row without a number, unless an equal row exists. Returns its state.
    pub(crate) fn add_once(&mut self, row: Row) -> Result<State, LabError> {
        let state = row.state;
        let same = |known: &Row| {
            (&known.candidate, &known.parameters, known.trial, known.state, &known.reason)
                == (&row.candidate, &row.parameters, row.trial, state, &row.reason)
        };
        if !self.rows.iter().any(same) {
            self.add(vec![row])?;
        }
        Ok(state)
    }

    fn fields(&self, row: &Row) -> Vec<String> {
        let optional = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
        let mut fields = vec![row.experiment.clone(), row.candidate.clone()];
        fields.extend(
            self.parameters
                .iter()
                .map(|name| row.parameters.get(name).cloned().unwrap_or_default()),
        );
        fields.extend([
            row.quantity.clone(),
            optional(row.value),
            row.unit.clone(),
            row.trial.to_string(),
            row.state.to_string(),
            row.reason.clone(),
            row.result.clone(),
            row.load.to_string(),
            optional(row.seconds),
            optional(row.cpu_seconds),
            row.commit.clone(),
            row.program.clone(),
            row.machine.clone(),
            row.seed.to_string(),
            row.command.clone(),
        ]);
        fields
    }
}

/// The names of the parameters in a file, and its rows.
pub(crate) fn read(path: &Path) -> Result<(Vec<String>, Vec<Row>), LabError> {
    let failed = |reason: String| LabError::Rows { path: path.into(), reason };
    let mut reader = csv::Reader::from_path(path).map_err(|error| failed(error.to_string()))?;
    let header = reader.headers().map_err(|error| failed(error.to_string()))?.clone();
    let parameters: Vec<String> =
        header.iter().filter(|name| !is_fixed(name)).map(str::to_owned).collect();
    let mut rows = Vec::new();
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(|error| failed(error.to_string()))?;
        let field = |name: &str| {
            header
                .iter()
                .position(|column| column == name)
                .and_then(|at| record.get(at))
                .unwrap_or("")
        };
        let row = row(&field, &parameters)
            .map_err(|reason| failed(format!("line {}: {reason}", number + 2)))?;
        rows.push(row);
    }
    Ok((parameters, rows))
}

fn row<'a>(field: &impl Fn(&str) -> &'a str, parameters: &[String]) -> Result<Row, String> {
    fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("invalid {name} {text:?}: expected a number"))
    }
    let given = |name: &String| {
        let value = field(name);
        (!value.is_empty()).then(|| (name.clone(), value.to_owned()))
    };
    let optional = |name: &str| match field(name) {
        "" => Ok(None),
        text => number(name, text).map(Some),
    };
    let state = field("status");
    Ok(Row {
        experiment: field("experiment").into(),
        candidate: field("candidate").into(),
        parameters: parameters.iter().filter_map(given).collect(),
        quantity: field("quantity").into(),
        value: optional("value")?,
        unit: field("unit").into(),
        trial: number("trial", field("trial"))?,
        state: State::ALL
            .into_iter()
            .find(|known| known.name() == state)
            .ok_or_else(|| format!("unknown status {state:?}"))?,
        reason: field("reason").into(),
        result: field("result").into(),
        load: number("load", field("load"))?,
        seconds: optional("seconds")?,
        cpu_seconds: optional("cpu_seconds")?,
        commit: field("commit").into(),
        program: field("program").into(),
        machine: field("machine").into(),
        seed: number("seed", field("seed"))?,
        command: field("command").into(),
    })
}

/// Whether every file has a column of this name; a parameter must not have it.
pub(crate) fn is_fixed(name: &str) -> bool {
    BEFORE.contains(&name) || AFTER.contains(&name)
}

/// Removes an incomplete last line; removes the file if it has no complete line.
fn cut_unfinished(path: &Path) -> Result<(), LabError> {
    let text = fs::read(path).map_err(LabError::io("reading", path))?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        // Truncation writes nothing, so complete lines are safe even if the disk is full.
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64))
            .map_err(LabError::io("repairing", path))?;
    }
    if whole == 0 {
        fs::remove_file(path).map_err(LabError::io("repairing", path))?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of a successful trial.
    pub(crate) fn row(candidate: &str, trial: u32, value: f64) -> Row {
        Row {
            experiment: "test/test".into(),
            candidate: candidate.into(),
            parameters: BTreeMap::new(),
            quantity: "v".into(),
            value: Some(value),
            unit: "1/s".into(),
            trial,
            state: State::Ok,
            reason: String::new(),
            result: "abc".into(),
            load: 0.5,
            seconds: Some(1.25),
            cpu_seconds: None,
            commit: "0123456789ab".into(),
            program: "0123456789abcdef".into(),
            machine: "xeon-2c".into(),
            seed: 1,
            command: "ringtap-lab trial x".into(),
        }
    }

    fn file(folder: &Path) -> RowFile {
        let parameters = vec!["n".into(), "size".into()];
        RowFile { path: folder.join("test.csv"), parameters, rows: Vec::new() }
    }

    #[test]
    fn written_rows_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = file(folder.path());
        let mut odd = row("a, \"b\"", 2, 1.0 / 3.0);
        odd.parameters.insert("n".into(), "1\n2".into());
        odd.reason = "=1+2, or so".into();
        let none = Row { value: None, state: State::Failed, ..row("c", 0, 0.0) };
        written.add(vec![row("a", 1, 1e300)]).unwrap();
        written.add(vec![odd, none]).unwrap();
        let (parameters, rows) = read(&written.path).unwrap();
        assert_eq!(parameters, written.parameters);
        assert_eq!(rows, written.rows);
        let first = fs::read_to_string(&written.path).unwrap();
        assert!(
            first.starts_with("experiment,candidate,n,size,quantity,value,unit,trial,"),
            "{first}"
        );
    }

    #[test]
    fn an_incomplete_last_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = file(folder.path());
        written.add(vec![row("a", 1, 1.0), row("b", 1, 2.0)]).unwrap();
        let text = fs::read_to_string(&written.path).unwrap();
        fs::write(&written.path, &text[..text.len() - 9]).unwrap();
        cut_unfinished(&written.path).unwrap();
        assert_eq!(read(&written.path).unwrap().1, written.rows[..1]);
        fs::write(&written.path, "experiment,cand").unwrap();
        cut_unfinished(&written.path).unwrap();
        assert!(!written.path.exists());
    }

    #[test]
    fn an_invalid_row_is_an_error_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = file(folder.path());
        written.add(vec![row("a", 1, 1.0)]).unwrap();
        let text = fs::read_to_string(&written.path).unwrap().replace(",ok,", ",fine,");
        fs::write(&written.path, text).unwrap();
        let error = read(&written.path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("fine"), "{error}");
    }
}
