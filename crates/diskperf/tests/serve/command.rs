//! How serving begins, ends, and is refused.

use crate::support::{User, words};
use crate::{AT_ONCE, Serving};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;

#[test]
fn serving_ends_with_its_statistics() {
    let user = User::new();
    let line = format!("{AT_ONCE} --for 20ms --speed 2 --seed 7 --format json");
    let outcome = user
        .run(&words(&line))
        .expect(0, &["serving fixed, 64 MiB at 2 times"]);
    let statistics = outcome.json();
    assert_eq!(statistics["drive"], "fixed");
    assert_eq!(statistics["size_bytes"], 64 << 20);
    assert_eq!(
        (&statistics["speed"], &statistics["seed"]),
        (&2.0.into(), &7.into())
    );
    assert_eq!(statistics["requests"], 0);
    assert!(statistics["elapsed_s"].as_f64().unwrap() >= 0.02);
    for (format, shown) in [
        ("table", "fixed: 0 requests of 0 connections"),
        ("csv", "operation,requests,failed,bytes"),
        ("markdown", "| operation"),
    ] {
        let line = format!("{AT_ONCE} --for 10ms --format {format}");
        user.run(&words(&line))
            .expect(0, &["Ctrl-C"])
            .shows(&[shown]);
    }
}

#[test]
fn a_signal_ends_serving_and_leaves_nothing() {
    let user = User::new();
    for signal in [Signal::INT, Signal::TERM] {
        let serving = Serving::start(&user, AT_ONCE);
        let socket = serving.socket();
        let connected = UnixStream::connect(&socket).unwrap();
        let folder = socket.parent().unwrap().to_owned();
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        let outcome = serving.end(signal).expect(0, &[]);
        assert!(outcome.stdout.contains("0 requests"), "{outcome:?}");
        assert!(!folder.exists(), "{}", folder.display());
        drop(connected);
    }
}

#[test]
fn a_named_socket_is_new_and_private_and_goes_at_the_end() {
    let user = User::new();
    let line = format!("{AT_ONCE} --socket ./own.sock");
    let serving = Serving::start(&user, &line);
    let metadata = fs::metadata(user.file("own.sock")).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let second = user.run(&words(&line));
    second.expect(2, &["--socket ./own.sock", "it exists: name another path"]);
    UnixStream::connect(user.file("own.sock")).expect("the first one still listens");
    serving.end(Signal::TERM).expect(0, &[]);
    assert!(!user.file("own.sock").exists());
}

#[test]
fn data_outlive_a_kill_and_are_served_once() {
    let user = User::new();
    let line = format!("{AT_ONCE} --data ./drive.img");
    let serving = Serving::start(&user, &line);
    let second = user.run(&words(&line));
    second.expect(2, &["./drive.img", "another process"]);
    let socket = serving.socket();
    let mut killed = serving;
    killed.process.signal(Signal::KILL);
    killed.process.finish();
    // A socket of a killed server stays: nobody else's is removed.
    fs::remove_file(&socket).unwrap();
    fs::remove_dir(socket.parent().unwrap()).unwrap();
    assert_eq!(
        fs::metadata(user.file("drive.img")).unwrap().len(),
        64 << 20
    );
    Serving::start(&user, &line).end(Signal::INT).expect(0, &[]);
}

#[test]
fn what_cannot_be_served_is_refused_with_the_remedy() {
    let user = User::new();
    fs::write(user.file("short.img"), "mine\n").unwrap();
    for (line, parts) in [
        (
            "serve fixed --tcp 0.0.0.0:10809",
            &["only the loopback", "127.0.0.1:10809"][..],
        ),
        ("serve fixed --tcp 10809", &["write 127.0.0.1:10809"]),
        (
            "serve fixed --tcp 127.0.0.1:0 --socket ./s",
            &["cannot be used with"],
        ),
        ("serve fixed --size 1G", &["--size 1073741824", "268435456"]),
        ("serve fixed --size 1000", &["sectors of 512 bytes"]),
        ("serve fixed --size 0", &["--size 0"]),
        ("serve fixed --speed 0", &["is no speed from 0.001"]),
        ("serve fixed --for 10", &["write 60s"]),
        (
            "serve fixed --data ./short.img",
            &["./short.img", "has 5 bytes"],
        ),
        ("serve fixed --data ./target", &["./target"]),
        ("serve fixed --data -", &["name a file"]),
        (
            "serve fixed --data ./absent.img --read-only",
            &["./absent.img"],
        ),
        (
            "serve fixed --set drive.servce_ms=1",
            &["servce_ms", "service_ms"],
        ),
        ("serve fixd", &["fixd"]),
        ("serve eagle", &["no drive by itself"]),
        (
            "serve vax780-sc780-eagle",
            &["whole computer", "diskperf list drives"],
        ),
        ("serve ./absent.toml", &["absent.toml"]),
    ] {
        user.run(&words(line)).expect(2, parts);
    }
    assert_eq!(
        fs::read_to_string(user.file("short.img")).unwrap(),
        "mine\n"
    );
}

#[test]
fn a_drive_of_a_file_or_of_an_overlay_is_served() {
    let user = User::new();
    let system = "description = \"A fixed drive.\"\nsource = \"a test\"\ndrives = 1\n\
                  [components]\ndrive = \"fixed\"\n[drive]\nsectors = 4096\n";
    fs::write(user.file("own.toml"), system).unwrap();
    user.run(&words("serve ./own.toml --for 10ms"))
        .expect(0, &["serving ./own.toml, 2 MiB"]);
    fs::create_dir_all(user.file("overlay/drives")).unwrap();
    let drive = include_str!("../../../../catalogue/drives/fixed.toml");
    let drive = drive.replace("524288", "8192");
    fs::write(user.file("overlay/drives/own.toml"), drive).unwrap();
    user.run(&words("serve own --catalogue ./overlay --for 10ms"))
        .expect(0, &["serving own, 4 MiB"]);
}
