//! A browser that tests control, by the protocol WebDriver.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{End, Killed, Net};

/// How often a condition is checked, 100 ms apart, before the test fails.
const CHECKS: u32 = 600;

/// Where the driver listens, in its namespace.
const PORT: u16 = 9515;

/// A browser without a window in the namespace of an end. It is closed on drop.
pub struct Driver<'a> {
    net: &'a Net,
    end: End,
    session: String,
    _driver: Killed,
    /// Open as long as the driver writes.
    _output: BufReader<ChildStdout>,
}

impl<'a> Driver<'a> {
    /// Starts a browser with these further flags; its profile is in `folder`. Prints a `SKIPPED` line and returns `None`
    /// without a browser.
    ///
    /// # Panics
    /// If the browser does not start.
    pub fn start(net: &'a Net, end: End, folder: &Path, flags: &[&str]) -> Option<Self> {
        if Command::new("chromedriver").arg("--version").output().is_err() {
            eprintln!("SKIPPED: chromedriver is not installed (Debian package chromium-driver)");
            return None;
        }
        let mut command = net.program(end, "chromedriver");
        command.arg(format!("--port={PORT}")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Killed(command.spawn().unwrap());
        let mut output = BufReader::new(child.0.stdout.take().unwrap());
        let started = |line: String| line.contains("started successfully");
        assert!(output.by_ref().lines().map_while(Result::ok).any(started), "chromedriver starts");
        let mut driver = Self { net, end, session: String::new(), _driver: child, _output: output };
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let own = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            &profile,
        ];
        let arguments: Vec<_> = own.iter().chain(flags).collect();
        let options = json!({ "args": arguments });
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options });
        let session = driver.post("", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        driver.session = format!("/{}", session["sessionId"].as_str().unwrap());
        Some(driver)
    }

    /// Sends a command and returns its value.
    fn post(&self, command: &str, body: &Value) -> Value {
        self.send("POST", command, &body.to_string())
    }

    /// # Panics
    /// If the command fails.
    fn send(&self, method: &str, command: &str, body: &str) -> Value {
        let (status, value) = self.exchange(method, command, body).expect("chromedriver answers");
        assert!(status.starts_with("HTTP/1.1 200"), "{command}: {}", value["message"]);
        value
    }

    /// Sends a command; returns the status and the value of the reply.
    fn exchange(&self, method: &str, command: &str, body: &str) -> io::Result<(String, Value)> {
        let place = format!("/session{}{command}", self.session);
        let mut stream = self.net.inside(self.end, || TcpStream::connect(("127.0.0.1", PORT)))?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        write!(
            stream,
            "{method} {place} HTTP/1.1\r\nHost: localhost:{PORT}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        // It leaves the connection open, so the length says where the reply ends.
        let mut reply = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let mut line = String::new();
            if reply.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
                length = number.trim().parse().map_err(io::Error::other)?;
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reply.read_exact(&mut body)?;
        let mut value: Value = serde_json::from_slice(&body)?;
        Ok((head.lines().next().unwrap_or_default().to_owned(), value["value"].take()))
    }

    /// Opens an address.
    pub fn open(&self, address: &str) {
        self.post("/url", &json!({ "url": address }));
    }

    /// Runs a script, which may return a value.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that calls `done` with its value.
    pub fn run_until_done(&self, script: &str) -> Value {
        let script = format!("const done = arguments[0]; {script}");
        self.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script again and again until its value is true.
    ///
    /// # Panics
    /// If it does not become true.
    pub fn wait_for(&self, script: &str) {
        for _ in 0..CHECKS {
            if self.run(script) == true {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        let text = self.run("return document.body.innerText");
        panic!("never true: {script}\n{}", text.as_str().unwrap_or_default());
    }

    /// Presses keys, one after the other; `\u{e004}` is the tabulator, `\u{e007}` is Enter.
    pub fn press(&self, keys: &str) {
        let press = |key: char| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
        };
        let actions: Vec<_> = keys.chars().flat_map(press).collect();
        let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Clicks on an element, and holds the button for some time.
    pub fn click(&self, selector: &str, time: Duration) {
        // By its place, because the page may replace it.
        let place = self.run(&format!(
            "const found = document.querySelector({selector:?}); found.scrollIntoView({{ block: 'center' }}); \
             const {{ left, top, width, height }} = found.getBoundingClientRect(); \
             return [Math.round(left + width / 2), Math.round(top + height / 2)];"
        ));
        let actions = json!([
            { "type": "pointerMove", "duration": 0, "x": place[0], "y": place[1] },
            { "type": "pointerDown", "button": 0 },
            { "type": "pause", "duration": time.as_millis() as u64 },
            { "type": "pointerUp", "button": 0 },
        ]);
        let source = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Draws the pointer over an element, from one part of its width to another (0 to 1).
    pub fn drag(&self, selector: &str, [from, to]: [f64; 2]) {
        let places = self.run(&format!(
            "const found = document.querySelector({selector:?}); found.scrollIntoView({{ block: 'center' }}); \
             const {{ left, top, width, height }} = found.getBoundingClientRect(); \
             return [{from}, {to}].map((part) => [Math.round(left + part * width), Math.round(top + height / 2)]);"
        ));
        let to = |at: usize| json!({ "type": "pointerMove", "duration": 50, "x": places[at][0], "y": places[at][1] });
        let (down, up) = (
            json!({ "type": "pointerDown", "button": 0 }),
            json!({ "type": "pointerUp", "button": 0 }),
        );
        let source =
            json!({ "type": "pointer", "id": "mouse", "actions": [to(0), down, to(1), up] });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Reports another width to the page, less than a window can have, and whether a dark scheme is preferred.
    pub fn emulate(&self, width: u32, height: u32, dark: bool) {
        let command = |name: &str, parameters: Value| {
            self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }));
        };
        command(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 }),
        );
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        command("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// What the tool axe finds wrong on the page: labels, contrast, structure, keyboard. Prints a `SKIPPED` line and
    /// returns `None` without it; `tools` is the folder with the virtual environment of Python.
    pub fn faults(&self, tools: &Path) -> Option<Vec<String>> {
        let Some(script) = axe(tools) else {
            eprintln!("SKIPPED: axe is not installed (scripts/setup-test.sh)");
            return None;
        };
        self.run(&fs::read_to_string(script).unwrap());
        let found = self.run_until_done(
            "axe.run().then((result) => done(result.violations.map((one) => one.id + ': ' + one.help + ': ' + \
             one.nodes.map((node) => node.html).join(' '))));",
        );
        let texts = found.as_array().unwrap().iter();
        Some(texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect())
    }
}

/// The script of axe, in a folder named after the version of Python.
fn axe(tools: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(tools.join("venv/lib")).ok()?.flatten();
    let scripts =
        folders.map(|folder| folder.path().join("site-packages/axe_playwright_python/axe.min.js"));
    scripts.into_iter().find(|path| path.is_file())
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // Closes the browser, which killing the driver does not. In a test that fails, a second panic would hide the first.
        let _ = self.exchange("DELETE", "", "");
    }
}
