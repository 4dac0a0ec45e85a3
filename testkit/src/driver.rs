//! A browser that tests control, by the protocol WebDriver.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
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

    fn send(&self, method: &str, command: &str, body: &str) -> Value {
        let place = format!("/session{}{command}", self.session);
        let mut stream =
            self.net.inside(self.end, || TcpStream::connect(("127.0.0.1", PORT))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        write!(
            stream,
            "{method} {place} HTTP/1.1\r\nHost: localhost:{PORT}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        // It leaves the connection open.
        let mut reply = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reply.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let lower = head.to_lowercase();
        let (_, length) = lower.split_once("content-length:").unwrap();
        let length = length.lines().next().unwrap().trim().parse().unwrap();
        let mut body = vec![0; length];
        reply.read_exact(&mut body).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{command}: {}", value["value"]["message"]);
        value["value"].clone()
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

    /// Sets the size of the window.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({ "width": width, "height": height }));
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
        // A test that panics here would hide the first panic.
        if !std::thread::panicking() {
            self.send("DELETE", "", "");
        }
    }
}
