//! The live page of a served drive: what it says, what a browser makes of it, and who may read it.

use crate::support::machine::{Needs, can_run};
use crate::support::{User, words};
use crate::{Serving, client};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const WATCHED: &[Needs] = &[Needs::Tool("chromium"), Needs::Tool("fio")];

/// A served drive with its page.
struct Watched {
    serving: Serving,
    url: String,
}

impl Watched {
    fn start(user: &User, line: &str) -> Self {
        let serving = Serving::start(user, &format!("{line} --http 127.0.0.1:0"));
        let rest = serving.line_after("watch it at ");
        let (url, _) = rest.split_once(';').expect("an address and more");
        let url = url.to_owned();
        Self { serving, url }
    }

    fn address(&self) -> SocketAddr {
        let host = self.url.trim_start_matches("http://").trim_end_matches('/');
        host.parse().expect("an address with a port")
    }

    /// Returns the answer to a request without a proxy or a library between.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address());
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn state(&self) -> Value {
        let answer = self.get("/state.json");
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Starts reads and writes all over the drive, which last as long as they are kept.
    fn load(&self) -> Load {
        let uri = format!("--uri={}", self.serving.uri);
        let job = [
            "--name=j",
            "--ioengine=nbd",
            "--rw=randrw",
            "--bs=4k",
            "--thread",
        ];
        let lasts = [
            "--iodepth=4",
            "--size=100g",
            "--time_based",
            "--runtime=600",
        ];
        let mut command = Command::new("fio");
        command.args(job).args(lasts).arg(uri);
        Load(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a page in a browser for seconds of its time, and returns its document.
fn browse(url: &str, profile: &Path, window: &str) -> String {
    let profile = format!("--user-data-dir={}", profile.display());
    let window = format!("--window-size={window}");
    let output = client(
        "chromium",
        &[
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--virtual-time-budget=20000",
            "--enable-logging=stderr",
            "--dump-dom",
            &profile,
            &window,
            url,
        ],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let console: Vec<_> = said
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(console.is_empty(), "{console:#?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the text of an attribute of the picture.
fn kinds_shown(document: &str) -> Vec<String> {
    let (_, rest) = document
        .split_once("data-shown=\"")
        .unwrap_or_else(|| panic!("nothing was drawn: {document}"));
    let (kinds, _) = rest.split_once('"').expect("an attribute ends");
    kinds.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_browser_shows_the_parts_of_a_drive_at_work() {
    if !can_run("a_browser_shows_the_parts_of_a_drive_at_work", WATCHED) {
        return;
    }
    for (drive, expected, legend, window) in [
        (
            "sas-10k",
            "media_transfer",
            "rotational latency",
            "1200,900",
        ),
        ("nvme-tlc", "program", "garbage collection", "390,844"),
    ] {
        let user = User::new();
        let watched = Watched::start(&user, &format!("serve {drive}"));
        let load = watched.load();
        let document = browse(&watched.url, &user.file("profile"), window);
        drop(load);
        let kinds = kinds_shown(&document);
        assert!(
            kinds.iter().any(|kind| kind == expected),
            "{drive}: {kinds:?}"
        );
        for text in [legend, ">read<", ">write<", "served for", "requests/s"] {
            assert!(document.contains(text), "{drive}: no {text}: {document}");
        }
        // Nothing comes from elsewhere.
        assert!(!document.contains("https:"), "{document}");
        watched.serving.end(Signal::TERM).expect(0, &[]);
    }
}

#[test]
fn the_state_has_the_work_of_the_parts() {
    if !can_run("the_state_has_the_work_of_the_parts", &[Needs::Tool("fio")]) {
        return;
    }
    let user = User::new();
    let watched = Watched::start(&user, "serve sas-10k");
    let state = watched.state();
    assert_eq!(state["shape"]["kind"], "disk");
    assert_eq!(
        state["shape"]["revolution_ms"].as_f64().unwrap().round(),
        6.0
    );
    assert_eq!(
        state["periods"].as_array().unwrap().len(),
        0,
        "an idle drive"
    );
    let load = watched.load();
    let periods = loop {
        let mut state = watched.state();
        let periods = state["periods"].as_array_mut().map(std::mem::take);
        let periods = periods.expect("a list");
        if periods.iter().any(|period| period["work"] == "seek") {
            break periods;
        }
    };
    drop(load);
    let cylinders = state["shape"]["cylinders"].as_u64().unwrap();
    for period in &periods {
        let at = |key: &str| period[key].as_f64().unwrap();
        assert!(at("start_ms") <= at("end_ms"), "{period}");
        assert!(period["cylinder"].as_u64().unwrap() < cylinders, "{period}");
        assert!((0.0..1.0).contains(&at("angle")), "{period}");
    }
    watched.serving.end(Signal::TERM).expect(0, &[]);
}

#[test]
fn only_the_loopback_has_the_page_and_no_other_site_reads_it() {
    let user = User::new();
    user.run(&words("serve fixed --http 0.0.0.0:8080"))
        .expect(2, &["--http 0.0.0.0:8080", "only the loopback"]);
    let watched = Watched::start(&user, "serve fixed");
    for (path, expected) in [
        ("/", "HTTP/1.1 200"),
        ("/metrics", "# EOF\n"),
        ("/metrics", "Content-Type: application/openmetrics-text"),
        ("/", "Content-Security-Policy: default-src 'none'"),
        ("/state.json", "\"kind\":\"plain\""),
        ("/etc/passwd", "HTTP/1.1 404"),
    ] {
        let answer = watched.get(path);
        assert!(answer.contains(expected), "{path}: {answer}");
    }
    let taken = format!("serve fixed --for 10ms --http {}", watched.address());
    user.run(&words(&taken))
        .expect(2, &["--http", "give another port"]);
    let address = watched.address();
    watched.serving.end(Signal::TERM).expect(0, &[]);
    TcpStream::connect(address).expect_err("the page ends with the server");
}
