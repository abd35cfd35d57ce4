//! The floor: Chromium over its debugging pipe with nothing in between, recording nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

pub struct Chromium {
    child: Child,
    input: File,
    output: BufReader<File>,
    requests: u64,
    session: String,
}

/// What a launch needs to be comparable; quietness is not measured here.
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
];

impl Chromium {
    /// Starts a browser with one page, ready for commands.
    pub fn start(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        let (input, output) = (directory.join("in"), directory.join("out"));
        assert!(Command::new("mkfifo").args([&input, &output]).status().unwrap().success());
        let executable = pageledger::browser::find_executable(true, None).unwrap();
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$IN\" 4>\"$OUT\""])
            .arg(executable)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .arg("about:blank")
            .env("IN", &input)
            .env("OUT", &output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = File::options().write(true).open(&input).unwrap();
        let output = BufReader::new(File::open(&output).unwrap());
        let mut browser = Self { child, input, output, requests: 0, session: String::new() };
        let target = browser.command("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.command("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser.command("Page.enable", json!({}));
        browser.command("Runtime.enable", json!({}));
        browser
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        assert!(self.output.read_until(0, &mut bytes).unwrap() > 0, "Chromium closed its pipe");
        bytes.pop();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let mut message = json!({"id": self.requests, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.requests
    }

    fn command(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let mut message = self.read();
            if message["id"] == id {
                return message["result"].take();
            }
        }
    }

    pub fn navigate(&mut self, url: &str) {
        self.send("Page.navigate", json!({"url": url}));
        while self.read()["method"] != "Page.loadEventFired" {}
    }

    pub fn evaluate(&mut self, expression: &str) {
        self.command("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
    }

    /// Runs `script` and reads until `messages` console messages have arrived.
    pub fn burst(&mut self, script: &str, messages: u64) {
        self.send("Runtime.evaluate", json!({"expression": script}));
        let mut arrived = 0;
        while arrived < messages {
            if self.read()["method"] == "Runtime.consoleAPICalled" {
                arrived += 1;
            }
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.session.clear();
        self.send("Browser.close", json!({}));
        self.child.wait().unwrap();
    }
}
