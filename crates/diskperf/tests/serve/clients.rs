//! Other programs beside a served drive.

use crate::support::User;
use crate::support::machine::{Needs, can_run};
use crate::{AT_ONCE, Serving, client, expect_success};
use serde_json::Value;
use std::fs;

/// Programs of libnbd.
const LIBNBD: &[Needs] = &[Needs::Tool("nbdinfo"), Needs::Tool("nbdcopy")];

const QEMU: &[Needs] = &[Needs::Tool("qemu-io"), Needs::Tool("qemu-img")];

/// Answers of nbdinfo to questions: 0 yes, 2 no.
const YES: i32 = 0;
const NO: i32 = 2;

#[test]
fn nbdinfo_shows_what_is_served() {
    if !can_run("nbdinfo_shows_what_is_served", LIBNBD) {
        return;
    }
    let user = User::new();
    for (line, is_rotational, is_read_only) in [
        (AT_ONCE, NO, NO),
        ("serve sata-7200 --size 64M", YES, NO),
        ("serve nvme-tlc --size 64M --read-only", NO, YES),
    ] {
        let serving = Serving::start(&user, line);
        let uri = serving.uri.as_str();
        let shown: Value =
            serde_json::from_str(&expect_success("nbdinfo", &["--json", uri])).unwrap();
        let export = &shown["exports"][0];
        assert_eq!(export["export-size"], 64 << 20, "{line}: {shown}");
        assert_eq!(export["block_size_minimum"], 1, "{line}: {shown}");
        for (question, about, expected) in [
            ("--can", "flush", YES),
            ("--can", "fua", YES),
            ("--can", "zero", YES),
            ("--can", "fast-zero", YES),
            ("--can", "cache", YES),
            ("--can", "df", YES),
            ("--can", "multi-conn", YES),
            ("--can", "structured-reply", YES),
            ("--can", "trim", if is_rotational == YES { NO } else { YES }),
            ("--is", "rotational", is_rotational),
            ("--is", "read-only", is_read_only),
        ] {
            // Of a read-only drive nbdinfo says that nothing can be changed.
            if is_read_only == YES && ["trim", "zero", "fast-zero", "fua"].contains(&about) {
                continue;
            }
            let answer = client("nbdinfo", &[question, about, uri]);
            let case = format!("{line}: {question} {about}");
            assert_eq!(answer.status.code(), Some(expected), "{case}: {answer:?}");
        }
        assert_eq!(
            expect_success("nbdinfo", &["--size", uri]).trim(),
            "67108864"
        );
        let map = expect_success("nbdinfo", &["--map", uri]);
        assert!(map.contains("hole,zero"), "{line}: {map}");
    }
}

/// Bytes that no two sectors share, with holes.
fn image() -> Vec<u8> {
    let mut image = vec![0; 64 << 20];
    for (number, sector) in image.chunks_mut(512).enumerate() {
        if number / 1000 % 3 != 0 {
            for (at, bytes) in sector.chunks_mut(8).enumerate() {
                bytes.copy_from_slice(&((number * 64 + at) as u64).to_le_bytes());
            }
        }
    }
    image
}

#[test]
fn nbdcopy_brings_back_what_it_took() {
    if !can_run("nbdcopy_brings_back_what_it_took", LIBNBD) {
        return;
    }
    let user = User::new();
    let (there, back) = (user.file("there.img"), user.file("back.img"));
    let image = image();
    fs::write(&there, &image).unwrap();
    let (from, to) = (there.to_str().unwrap(), back.to_str().unwrap());
    for (line, connections) in [
        (AT_ONCE.to_owned(), "1"),
        (format!("{AT_ONCE} --data ./drive.img"), "4"),
        (format!("{AT_ONCE} --tcp 127.0.0.1:0"), "4"),
    ] {
        let serving = Serving::start(&user, &line);
        let many = format!("--connections={connections}");
        expect_success("nbdcopy", &[&many, "--flush", from, &serving.uri]);
        expect_success("nbdcopy", &[&many, &serving.uri, to]);
        assert!(fs::read(&back).unwrap() == image, "{line}: bytes differ");
        fs::remove_file(&back).unwrap();
    }
    assert!(fs::read(user.file("drive.img")).unwrap() == image);
}

#[test]
fn qemu_io_finds_its_patterns() {
    if !can_run("qemu_io_finds_its_patterns", QEMU) {
        return;
    }
    let user = User::new();
    let serving = Serving::start(&user, AT_ONCE);
    let commands = [
        "write -P 0xa5 0 64k",
        "read -P 0xa5 0 64k",
        "flush",
        "discard 0 64k",
        "read -P 0 0 64k",
        "write -z 64k 64k",
        "write -f -P 1 0 512",
        "read -P 1 0 512",
        "write -P 7 1000 3000",
        "read -P 7 1000 3000",
    ];
    let mut words = vec!["-f", "raw"];
    words.extend(commands.iter().flat_map(|command| ["-c", command]));
    words.push(&serving.uri);
    expect_success("qemu-io", &words);
    let wrong = ["-f", "raw", "-c", "read -P 0x5a 0 512", &serving.uri];
    assert_eq!(client("qemu-io", &wrong).status.code(), Some(1));
    let shown = expect_success("qemu-img", &["info", "-f", "raw", &serving.uri]);
    assert!(shown.contains("64 MiB"), "{shown}");
}

/// Whether fio is installed with its engine for NBD.
fn has_fio(test: &str) -> bool {
    if !can_run(test, &[Needs::Tool("fio")]) {
        return false;
    }
    let engine = client("fio", &["--enghelp=nbd"]);
    if !engine.status.success() {
        eprintln!("SKIPPED {test}: fio has no nbd engine");
    }
    engine.status.success()
}

fn fio(user: &User, serving: &Serving, options: &[&str]) -> Value {
    let uri = format!("--uri={}", serving.uri);
    let result = user.file("fio.json");
    let output = format!("--output={}", result.display());
    let common = [
        "--name=j",
        "--ioengine=nbd",
        "--output-format=json",
        &uri,
        &output,
    ];
    expect_success("fio", &[&common, options].concat());
    let text = fs::read_to_string(&result).unwrap();
    // Notes may stand before the results.
    let start = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[start..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !has_fio("fio_verifies_what_it_wrote") {
        return;
    }
    let user = User::new();
    let serving = Serving::start(&user, "serve nvme-tlc --size 64M");
    let options = [
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=16",
        "--size=64M",
        "--io_size=8M",
        "--verify=crc32c",
        "--do_verify=1",
        // Its state would be a file in the folder of the test.
        "--verify_state_save=0",
        "--fsync=64",
        "--randseed=11",
    ];
    let results = fio(&user, &serving, &options);
    let job = &results["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    assert_eq!(job["read"]["total_ios"], 2048, "{job}");
}

/// However the machine is loaded, no answer is earlier than the model has it. Upper limits are
/// those of a machine at rest, and asserted nowhere.
#[test]
fn no_program_sees_an_answer_early() {
    if !has_fio("no_program_sees_an_answer_early") {
        return;
    }
    let user = User::new();
    let line = "serve fixed --set drive.service_ms=10 --format json";
    let serving = Serving::start(&user, line);
    let options = ["--rw=randread", "--bs=4k", "--size=64M", "--io_size=400k"];
    let results = fio(&user, &serving, &options);
    let latency = &results["jobs"][0]["read"]["lat_ns"];
    assert!(latency["min"].as_f64().unwrap() >= 10e6, "{latency}");
    let statistics = serving
        .end(rustix::process::Signal::INT)
        .expect(0, &[])
        .json();
    let reads = &statistics["operations"][0];
    assert_eq!(reads["operation"], "read", "{statistics}");
    assert_eq!(reads["requests"], 100, "{statistics}");
    assert_eq!(reads["bytes"], 409_600, "{statistics}");
    let service_ms = reads["service_ms"]["p50"].as_f64().unwrap();
    assert!((9.99..10.02).contains(&service_ms), "{statistics}");
    eprintln!("client {latency}, lateness {}", reads["lateness_ms"]);
}
