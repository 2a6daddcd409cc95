//! Faults of a served drive, from their files to the statistics and the log.

use crate::support::machine::{Needs, can_run};
use crate::support::{User, words};
use crate::{AT_ONCE, Serving, client, expect_success};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

#[test]
fn clients_see_faults_and_the_log_has_each_strike() {
    let needs = [Needs::Tool("qemu-io")];
    if !can_run("clients_see_faults_and_the_log_has_each_strike", &needs) {
        return;
    }
    let user = User::new();
    let faults = "[[fault]]\nname = \"bad\"\nkind = \"unreadable_sectors\"\nfirst_sector = 128\nsectors = 8\n\
                  [[fault]]\nkind = \"lost_write\"\nfirst_sector = 2048\n";
    fs::write(user.file("faults.toml"), faults).unwrap();
    let line = format!("{AT_ONCE} --fault ./faults.toml --fault-log ./struck.jsonl --format json");
    let serving = Serving::start(&user, &line);
    let io = |command: &str| client("qemu-io", &["-f", "raw", "-c", command, &serving.uri]);
    let failed = io("read 64k 512");
    assert!(!failed.status.success(), "{failed:?}");
    for command in [
        "read 60k 4k",
        "read 68k 4k",
        "write -P 7 64k 4k",
        "read -P 7 64k 4k",
        "write -P 7 1M 64k",
        "read -P 0 1M 64k",
    ] {
        expect_success("qemu-io", &["-f", "raw", "-c", command, &serving.uri]);
    }
    let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
    let faults = statistics["faults"].as_array().unwrap();
    assert_eq!(faults[0]["name"], "bad");
    assert_eq!(faults[0]["kind"], "unreadable_sectors");
    assert_eq!(faults[1]["name"], "lost_write");
    let log = fs::read_to_string(user.file("struck.jsonl")).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    for (fault, effect, offset) in [
        ("bad", "failed", 64 << 10),
        ("bad", "reassigned", 64 << 10),
        ("lost_write", "lost", 1 << 20),
    ] {
        let is_it = |line: &&Value| {
            line["fault"] == fault && line["effect"] == effect && line["offset"] == offset
        };
        assert!(
            lines.iter().any(|line| is_it(&line)),
            "{fault} {effect}: {log}"
        );
    }
    let struck: u64 = faults.iter().filter_map(|of| of["strikes"].as_u64()).sum();
    assert_eq!(struck, lines.len() as u64);
    for line in &lines {
        assert!(
            line["time_s"].is_f64() && line["request"].as_u64() > Some(0),
            "{line}"
        );
    }
}

#[test]
fn wrong_files_of_faults_are_refused_at_their_place() {
    let user = User::new();
    for (text, parts) in [
        (
            "[[fault]]\nkind = 'slow_drive'\nfacter = 2\n",
            &["./faults.toml:3:1", "did you mean `factor`?"][..],
        ),
        (
            "[[fault]]\nkind = 'death'\nfirst_sector = 131072\n",
            &["./faults.toml:3:16", "from 0 to 131071"],
        ),
    ] {
        fs::write(user.file("faults.toml"), text).unwrap();
        let line = format!("{AT_ONCE} --fault ./faults.toml");
        user.run(&words(&line)).expect(2, parts);
    }
    for (options, part) in [
        ("--fault ./absent.toml", "./absent.toml"),
        ("--fault ./target", "is a directory"),
        ("--fault-log -", "name a file"),
        ("--fault-log ./target", "./target"),
    ] {
        let line = format!("{AT_ONCE} {options}");
        user.run(&words(&line)).expect(2, &[part]);
    }
}

#[test]
fn the_control_socket_switches_faults_and_shows_statistics() {
    let user = User::new();
    let faults = "[[fault]]\nname = 'lost'\nkind = 'lost_write'\non = false\n\
                  [[fault]]\nkind = 'bit_rot'\n";
    fs::write(user.file("faults.toml"), faults).unwrap();
    let line = format!("{AT_ONCE} --fault ./faults.toml --control ./control");
    let serving = Serving::start(&user, &line);
    let stream = UnixStream::connect(user.file("control")).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let mut ask = |command: &str| -> Value {
        writeln!(&stream, "{command}").unwrap();
        let answer = lines.next().unwrap().unwrap();
        serde_json::from_str(&answer).expect(&answer)
    };
    let faults = ask(r#"{"faults": true}"#);
    assert_eq!(faults["faults"][0]["name"], "lost");
    assert_eq!(faults["faults"][0]["on"], false);
    let switched = ask(r#"{"fault": "lost", "on": true}"#);
    assert_eq!(
        (&switched["name"], &switched["on"]),
        (&"lost".into(), &true.into())
    );
    assert_eq!(ask(r#"{"faults": true}"#)["faults"][0]["on"], true);
    let statistics = ask(r#"{"statistics": true}"#);
    assert_eq!(
        (&statistics["drive"], &statistics["requests"]),
        (&"fixed".into(), &0.into())
    );
    for (command, part) in [
        (
            r#"{"fault": "lsot", "on": true}"#,
            "there is `lost`, `bit_rot`",
        ),
        (r#"{"fault": "lost"}"#, "unknown command `fault`"),
        (r#"{"fault": "lost", "on": 1}"#, "`on` is true or false"),
        (r#"{"flauts": true}"#, "unknown command `flauts`"),
        ("{}", "the command is empty"),
        ("[]", "a command is an object"),
        ("faults", "not valid JSON"),
    ] {
        let error = ask(command)["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(error.contains(part), "{command}: {error}");
    }
    let second = user.run(&words(&format!("{AT_ONCE} --control ./control")));
    second.expect(2, &["--control ./control", "it exists: name another path"]);
    serving.end(Signal::TERM).expect(0, &[]);
    assert!(!user.file("control").exists());
}
