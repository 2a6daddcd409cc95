//! What real storage is asked for, as a block trace: by whoever, and in a run.

use crate::support::machine::{LoopDevice, Needs, can_run, instances_of, run};
use crate::support::{Process, SmallDisk, User, open_to_all, words};
use rustix::process::Signal;
use serde_json::Value;

const EVENTS: &[Needs] = &[Needs::BlockEvents, Needs::LoopDevices];

/// What a disk has done since it is there: requests that read, write, discard and flush,
/// and the sectors of the first three.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done {
    requests: [u64; 4],
    sectors: [u64; 3],
}

impl Done {
    fn by(disk: &str) -> Self {
        let text = std::fs::read_to_string(format!("/sys/block/{disk}/stat")).expect("counters");
        let counters: Vec<u64> = text
            .split_whitespace()
            .map(|one| one.parse().expect("a counter"))
            .collect();
        let of = |place: usize| counters.get(place).copied().unwrap_or(0);
        Self {
            requests: [0, 4, 11, 15].map(of),
            sectors: [2, 6, 13].map(of),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            requests: std::array::from_fn(|at| self.requests[at] - before.requests[at]),
            sectors: std::array::from_fn(|at| self.sectors[at] - before.sectors[at]),
        }
    }

    /// What a trace has.
    fn in_trace(found: &Value) -> Self {
        let operations = found["summary"]["operations"].as_array().expect("some");
        let of = |name: &str, what: &str| {
            let one = operations.iter().find(|one| one["operation"] == name);
            one.map_or(0, |one| one[what].as_u64().expect("a number"))
        };
        let bytes = |name: &str| of(name, "bytes") / 512;
        Self {
            requests: ["read", "write", "discard", "flush"].map(|name| of(name, "requests")),
            sectors: ["read", "write", "discard"].map(bytes),
        }
    }

    /// A flush that somebody asks for by itself counts as a write of nothing besides, of
    /// which no request comes: of writes, the sectors tell.
    fn is_within(self, other: Self) -> bool {
        let pairs = [0, 2, 3].map(|at| (&self.requests[at], &other.requests[at]));
        let pairs = pairs.into_iter();
        pairs
            .chain(self.sectors.iter().zip(&other.sectors))
            .all(|(one, most)| one <= most)
    }
}

fn trace(user: &User, line: &str) -> Value {
    let line = format!("trace {line} --format json --quiet");
    user.run(&words(&line)).expect(0, &[]).json()
}

/// A process that records, and listens already.
fn recording(user: &User, line: &str) -> Process {
    let mut process = user.start(&words(line));
    let file = user.file("t");
    process.wait_until(|| file.metadata().is_ok_and(|status| status.len() > 16));
    process
}

#[test]
fn every_request_of_a_disk_is_recorded() {
    if !can_run("every_request_of_a_disk_is_recorded", EVENTS) {
        return;
    }
    let user = User::new();
    let disk = LoopDevice::blank(user.scratch(), 32);
    let (name, path) = (disk.name(), disk.text());
    let outer = Done::by(&name);
    let mut process = recording(&user, &format!("record {path} -o t --format json"));
    let number = process.pid().as_raw_nonzero().get();
    assert_eq!(instances_of(number).len(), 1);
    let inner = Done::by(&name);
    let other = User::new();
    let line = format!(
        "run random --on {path} --destroy-data-on {path} --direct --size 4M --runs 2 --quiet --set program.area_bytes=16M --set program.write_share=0.5 --set program.depth=16"
    );
    other.run(&words(&line)).expect(0, &[]);
    // Whoever else: through the cache, synced, and given up.
    let of = format!("of={path}");
    run(
        "dd",
        &[
            "if=/dev/zero",
            &of,
            "bs=64K",
            "count=16",
            "conv=fsync",
            "status=none",
        ],
    );
    if can_run(
        "every_request_of_a_disk_is_recorded (discards)",
        &[Needs::Tool("blkdiscard")],
    ) {
        run("blkdiscard", &["--length", "1M", &path]);
    }
    if can_run(
        "every_request_of_a_disk_is_recorded (fio)",
        &[Needs::Tool("fio")],
    ) {
        let job = [
            "--name=a",
            "--rw=randrw",
            "--bs=4k",
            "--direct=1",
            "--iodepth=8",
            "--ioengine=libaio",
            "--number_ios=500",
            "--size=16M",
            "--fsync=50",
        ];
        let file = format!("--filename={path}");
        run("fio", &[&job[..], &[&file]].concat());
    }
    let inner = Done::by(&name).since(inner);
    process.signal(Signal::INT);
    let printed = process.finish().expect(0, &[]).json();
    let outer = Done::by(&name).since(outer);
    assert_eq!(printed["lost_events"], 0, "{printed}");
    assert_eq!(printed["is_interrupted"], true);
    assert!(printed["cpu_share"].as_f64() > Some(0.0), "{printed}");
    let found = trace(&user, "t");
    let recorded = Done::in_trace(&found);
    assert!(
        inner.is_within(recorded) && recorded.is_within(outer),
        "{inner:?} {recorded:?} {outer:?}"
    );
    assert!(
        inner.requests[0] > 500 && inner.requests[1] > 500,
        "{inner:?}"
    );
    assert_eq!(printed["requests"], found["summary"]["requests"]);
    assert_eq!(found["notices"]["without_completion"], 0, "{found}");
    assert_eq!(found["summary"]["devices"][0]["device"], name.as_str());
    assert_eq!(instances_of(number), [""; 0]);
}

/// Of a partition, its own requests by their places in it.
#[test]
fn of_a_partition_its_own_requests_are_recorded() {
    let test = "of_a_partition_its_own_requests_are_recorded";
    let needs = [EVENTS, &[Needs::Tool("sfdisk"), Needs::Tool("partx")]].concat();
    if !can_run(test, &needs) {
        return;
    }
    let user = User::new();
    let disk = LoopDevice::blank(user.scratch(), 32);
    let path = disk.text();
    let table = "printf '2048,16384,L\\n18432,16384,L\\n'";
    let line = format!("{table} | sfdisk --quiet --label dos --no-reread --no-tell-kernel {path}");
    run("sh", &["-c", &line]);
    disk.add_partitions();
    let mut process = recording(&user, &format!("record {path}p2 -o t --quiet"));
    for (part, skip) in [("p1", 8), ("p2", 16)] {
        let file = format!("if={path}{part}");
        let skip = format!("skip={skip}");
        run(
            "dd",
            &[
                &file,
                "of=/dev/null",
                "bs=4K",
                "count=1",
                &skip,
                "iflag=direct",
                "status=none",
            ],
        );
    }
    process.signal(Signal::INT);
    process.finish().expect(0, &[]);
    user.run(&words("trace t --convert csv -o t.csv --quiet"))
        .expect(0, &[]);
    let text = std::fs::read_to_string(user.file("t.csv")).expect("a trace");
    let name = format!("{}p2", disk.name());
    let wanted = |line: &&str| line.contains(",R,65536,4096,") && line.ends_with(&name);
    assert_eq!(text.lines().filter(wanted).count(), 1, "{text}");
    assert!(!text.contains(",R,32768,"), "{text}");
}

#[test]
fn a_run_on_a_disk_is_recorded_by_its_block_layer() {
    let needs = [EVENTS, &[Needs::Tool("mkfs.ext4")]].concat();
    if !can_run("a_run_on_a_disk_is_recorded_by_its_block_layer", &needs) {
        return;
    }
    let user = User::new();
    let _disk = SmallDisk::mounted_on(&user.target(), user.scratch(), 64);
    let line = "run read_8192 --on ./target --size 4M --runs 3 --direct --record t";
    user.run(&words(line))
        .expect(0, &["recorded in t", "block-layer events"]);
    let found = trace(&user, "t");
    // A repetition that others disturbed is done again.
    let parts = found["parts"].as_array().expect("parts").len() as u64;
    assert!(parts >= 3, "{parts} repetitions");
    let read = &found["summary"]["operations"][0];
    assert_eq!(read["operation"], "read");
    // One call of O_DIRECT is one request; the file system may read beside it.
    assert!(read["requests"].as_u64() >= Some(parts * 512), "{read}");
    assert!(read["requests"].as_u64() < Some(parts * 520), "{read}");
    assert!(read["response_ns"]["p50"].as_f64() > Some(0.0), "{read}");
    let target = serde_json::json!({ "name": "target", "value": "./target" });
    let about = found["about"].as_array().expect("what it is of");
    assert!(about.contains(&target), "{found}");
}

#[test]
fn without_block_events_a_run_is_recorded_as_its_rings_submit() {
    let user = User::new();
    let line = "run random --on null --size 1M --runs 2 --record t --format json";
    let ran = user
        .run(&words(line))
        .expect(0, &["requests of the programs' rings"]);
    let requests = |of: &Value| {
        let made = of["runs"][0]["results"][0]["repetitions"]
            .as_array()
            .expect("some");
        let calls = made
            .iter()
            .map(|one| one["workers"][0]["calls"].as_u64().expect("calls"));
        calls.sum::<u64>()
    };
    let found = trace(&user, "t");
    assert_eq!(
        found["summary"]["requests"].as_u64(),
        Some(requests(&ran.json()))
    );
    assert_eq!(found["notices"]["without_completion"], 0);
    // What a busy machine disturbed is repeated.
    let made = ran.json()["runs"][0]["results"][0]["repetitions"].clone();
    let parts = found["parts"].as_array().map(Vec::len);
    assert_eq!(parts, made.as_array().map(Vec::len));

    // As a user who may do nothing special; of programs that make calls nothing is known.
    let user = User::new();
    open_to_all(&user.home());
    open_to_all(&user.target());
    let line = "run random --on ./target --size 256K --runs 1 --record t";
    user.run_as_nobody(&words(line))
        .expect(0, &["requests of the programs' rings", "need root"]);
    let found = trace(&user, "t");
    assert_eq!(
        found["summary"]["devices"].as_array().map(Vec::len),
        Some(1),
        "{found}"
    );
    let line = "run read_8192 --on ./target --size 64K --runs 1 --record u";
    user.run_as_nobody(&words(line)).expect(
        1,
        &[
            "--record u: there are no block-layer events",
            "no file is written",
        ],
    );
    assert!(!user.file("u").exists());
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let user = User::new();
    open_to_all(&user.home());
    user.run_as_nobody(&words("record ./target -o t"))
        .expect(2, &["need root"]);
    user.run(&words("record ./no/such -o t"))
        .expect(2, &["./no/such", "lsblk"]);
    user.run(&words("record ./target --for 5 -o t"))
        .expect(2, &["--for", "60s"]);
    user.run(&words("record /proc -o t"))
        .expect(2, &["/proc is on no block device"]);
    std::fs::write(user.file("mine"), "kept").expect("a file");
    user.run(&words("record ./target -o mine"))
        .expect(2, &["mine", "--force"]);
    assert!(!user.file("t").exists());
}
