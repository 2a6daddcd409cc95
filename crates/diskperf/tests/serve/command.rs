//! How serving begins, ends, and is refused.

use crate::support::{User, words};
use crate::{AT_ONCE, Serving};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

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
    let line = format!("{AT_ONCE} --write --data ./drive.img");
    let serving = Serving::start(&user, &line);
    let second = user.run(&words(&line));
    second.expect(2, &["./drive.img", "another process"]);
    let socket = serving.socket();
    let mut killed = serving;
    killed.process.signal(Signal::KILL);
    killed.process.finish();
    assert!(socket.exists(), "a killed server leaves its socket");
    assert_eq!(
        fs::metadata(user.file("drive.img")).unwrap().len(),
        64 << 20
    );
    Serving::start(&user, &line).end(Signal::INT).expect(0, &[]);
}

#[test]
fn clean_removes_what_a_killed_server_left() {
    let user = User::new();
    let (mut killed, serving) = (
        Serving::start(&user, AT_ONCE),
        Serving::start(&user, AT_ONCE),
    );
    let (left, used) = (killed.socket(), serving.socket());
    killed.process.signal(Signal::KILL);
    killed.process.finish();
    let folder = left.parent().unwrap().display().to_string();
    user.run(&words("clean --dry-run"))
        .expect(0, &[])
        .shows(&[&format!("would remove {folder}")]);
    assert!(left.exists());
    let cleaned = user.run(&words("clean")).expect(0, &[]);
    cleaned.shows(&[&format!("removed {folder}")]);
    assert!(!left.parent().unwrap().exists());
    UnixStream::connect(&used).expect("another server goes on");
    assert!(used.exists());
    serving.end(Signal::TERM).expect(0, &[]);
    let again = user.run(&words("clean")).expect(0, &[]);
    again.shows(&["nothing to remove"]);
}

#[test]
fn what_was_recorded_is_a_trace_that_is_replayed() {
    let user = User::new();
    let line = "serve fixed --set drive.service_ms=5 --record ./served.trace";
    let serving = Serving::start(&user, line);
    let mut stream = connect(&serving);
    let mut write = request(1);
    write.extend([9; 512]);
    for (sent, bytes) in [(request(0), 16 + 512), (write, 16), (request(0), 16 + 512)] {
        stream.write_all(&sent).unwrap();
        stream.read_exact(&mut vec![0; bytes]).unwrap();
    }
    let outcome = serving.end(Signal::TERM).expect(0, &[]);
    assert!(outcome.stdout.contains("3 requests"), "{outcome:?}");
    let shown = user.run(&words("trace ./served.trace --format json"));
    let shown = shown.expect(0, &[]).json().to_string();
    assert!(shown.contains("fixed"), "{shown}");
    let line = "replay ./served.trace --on bare-fixed --runs 1";
    user.run(&words(line)).expect(0, &[]);
    let again = user.run(&words("serve fixed --for 10ms --record ./served.trace"));
    again.expect(2, &["./served.trace", "--force"]);
    let again = "serve fixed --for 10ms --record ./served.trace --force";
    user.run(&words(again))
        .expect(0, &["recorded 0 requests in ./served.trace"]);
}

#[test]
fn an_image_is_left_as_it_is_unless_it_is_to_be_written() {
    let user = User::new();
    let image = vec![7; 64 << 20];
    fs::write(user.file("drive.img"), &image).unwrap();
    let line = format!("{AT_ONCE} --data ./drive.img");
    let mut write = request(1);
    write.extend([9; 512]);
    for (options, is_written) in [("", false), (" --write", true)] {
        let serving = Serving::start(&user, &format!("{line}{options}"));
        let mut stream = connect(&serving);
        let mut answer = [1; 16 + 512];
        stream.write_all(&write).unwrap();
        stream.read_exact(&mut answer[..16]).unwrap();
        stream.write_all(&request(0)).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[16..], [9; 512], "what was written is read");
        match is_written {
            // Others may read the image, too, and none may write it.
            false => {
                let line = format!("{line} --for 10ms");
                user.run(&words(&line))
                    .expect(0, &["./drive.img is left as it is", "--write"]);
                let line = format!("{AT_ONCE} --data ./drive.img --write");
                user.run(&words(&line))
                    .expect(2, &["./drive.img", "another process"]);
            }
            true => drop(user.run(&words(&line)).expect(2, &["another process"])),
        }
        serving.end(Signal::TERM).expect(0, &[]);
        let after = fs::read(user.file("drive.img")).unwrap();
        assert_eq!(after[..512] == [9; 512], is_written);
        assert!(after[512..] == image[512..]);
    }
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
        ("serve fixed --write", &["--data <FILE>"]),
        (
            "serve fixed --data ./short.img --write --read-only",
            &["cannot be used with"],
        ),
        (
            "serve fixed --data ./absent.img --read-only",
            &["./absent.img"],
        ),
        (
            "serve fixed --set drive.servce_ms=1",
            &["servce_ms", "service_ms"],
        ),
        ("serve fixd", &["no drive `fixd`; did you mean `fixed`?"]),
        ("serve eagle", &["is the drive of an old controller"]),
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

/// A connection in the transmission phase, by the oldest option of the handshake.
fn connect(serving: &Serving) -> UnixStream {
    let mut stream = UnixStream::connect(serving.socket()).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    stream
        .write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0")
        .unwrap();
    let mut export = [0; 10];
    stream.read_exact(&mut export).unwrap();
    stream
}

/// A request for the first sector.
fn request(command: u8) -> Vec<u8> {
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, command];
    request.extend([0; 18]);
    request.extend([2, 0]);
    request
}

/// A server that stands still answers late, and the model's time is what it would have been.
#[test]
fn a_stopped_server_is_late_and_its_model_is_not() {
    let user = User::new();
    let line = "serve fixed --set drive.service_ms=3000 --format json";
    let mut serving = Serving::start(&user, line);
    let mut stream = connect(&serving);
    // The read is in flight when the unknown command behind it is refused.
    stream
        .write_all(&[request(0), request(42)].concat())
        .unwrap();
    let mut refused = [0; 16];
    stream.read_exact(&mut refused).unwrap();
    assert_eq!(refused[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22]);
    serving.process.signal(Signal::STOP);
    thread::sleep(Duration::from_secs(4));
    serving.process.signal(Signal::CONT);
    let mut answer = [1; 16 + 512];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
    let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
    let reads = &statistics["operations"][0];
    let service_ms = reads["service_ms"]["p50"].as_f64().unwrap();
    assert!((2_990.0..3_010.0).contains(&service_ms), "{statistics}");
    assert!(
        reads["lateness_ms"]["max"].as_f64().unwrap() > 100.0,
        "{statistics}"
    );
    assert_eq!(
        (&reads["is_late"], &statistics["refused"]),
        (&true.into(), &1.into())
    );
}
