//! What was written is read back and compared: by programs, by job files, and of files that
//! fio wrote.

use crate::support::{User, words};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SEQUENTIAL: &str = "run sequential --set program.write_share=1 --set program.area_bytes=1M \
                          --size 1M --set program.block_bytes=64K --runs 2 --verify";

#[test]
fn a_run_tells_what_was_read_back() {
    let user = User::new();
    for target in ["./target", "bare-fixed --direct", "vax780-sc780-eagle"] {
        let done = user.run(&words(&format!("{SEQUENTIAL} --on {target} --format json")));
        let run = done.expect(0, &[]).json();
        let result = &run["runs"][0]["results"][0];
        let blocks = result["verified"]["blocks"]
            .as_u64()
            .expect("verified blocks");
        assert!(
            blocks >= 16 && blocks.is_multiple_of(16),
            "{target}: {result}"
        );
        assert_eq!(result["verified"]["mismatches"], 0, "{target}");
        assert_eq!(result["verified"]["kind"], "crc32c", "{target}");
        assert!(result["latency"]["read"].is_null(), "{target}: {result}");
    }
    let shown = user.run(&words(&format!("{SEQUENTIAL} --on ./target")));
    shown
        .expect(0, &[])
        .shows(&["MiB written, ", "all as they were written (crc32c)"]);
}

#[test]
fn a_job_that_verifies_tells_it_and_its_writes_have_the_rate_of_their_time() {
    let user = User::new();
    let job = "[j]\nrw=randwrite\nsize=256k\nbs=4k\nverify=md5\n";
    fs::write(user.file("job.fio"), job).unwrap();
    for target in ["./target", "vax780-sc780-eagle"] {
        let line = format!("run job.fio --on {target} --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json();
        let result = &run["runs"][0]["results"][0];
        assert_eq!(result["verified"]["blocks"], 64, "{target}: {result}");
        let rate = |name: &str| result["latency"][name]["iops"].as_f64().expect("a rate");
        let [both, reads, writes] = [
            result["iops"].as_f64().unwrap(),
            rate("read"),
            rate("write"),
        ];
        assert!(
            reads > both / 2.0 && writes > both / 2.0,
            "{target}: {both} {reads} {writes}"
        );
    }
}

#[test]
fn a_file_of_fios_is_verified_and_a_changed_bit_ends_with_1() {
    let fio = Command::new("fio").arg("--version").output();
    if fio.is_err() {
        eprintln!("SKIPPED a_file_of_fios_is_verified_and_a_changed_bit_ends_with_1: no fio");
        return;
    }
    let user = User::new();
    let data = user.file("written");
    let options = "filename=written\nsize=256k\nbs=4k\nverify=crc32c\n";
    fs::write(
        user.file("write.fio"),
        format!("[j]\nrw=write\ndo_verify=0\n{options}"),
    )
    .unwrap();
    fs::write(user.file("read.fio"), format!("[j]\nrw=read\n{options}")).unwrap();
    fs::write(
        user.file("only.fio"),
        format!("[j]\nrw=write\nverify_only\n{options}"),
    )
    .unwrap();
    let folder = data.parent().expect("a folder").to_owned();
    let written = Command::new("fio")
        .arg("write.fio")
        .current_dir(&folder)
        .output();
    assert!(written.expect("fio runs").status.success());
    let before = fs::read(&data).unwrap();
    for job in ["read.fio", "only.fio"] {
        let done = user.run(&words(&format!("run {job}")));
        done.expect(0, &[])
            .shows(&["64 blocks (256 KiB) read back and compared"]);
    }
    assert!(before == fs::read(&data).unwrap(), "nothing is written");
    let mut changed = before;
    changed[9000] ^= 1;
    fs::write(&data, changed).unwrap();
    for job in ["read.fio", "only.fio"] {
        let done = user.run(&words(&format!("run {job}")));
        done.expect(
            1,
            &[
                "1 of 64 blocks differ",
                "written: byte 8192: crc32c",
                "byte 9000: expected",
            ],
        );
    }
}

/// Fields of the one record of a CSV, by their headings.
fn record(csv: &str) -> BTreeMap<&str, String> {
    let (headings, rest) = csv.split_once("\r\n").expect("headings");
    let mut fields = vec![String::new()];
    // Outside of quotes are the pieces with an even number; a quote in a field is two.
    for (number, piece) in rest.trim_end().split('"').enumerate() {
        match number % 2 {
            0 => {
                let mut parts = piece.split(',');
                let first = parts.next().expect("a part");
                fields.last_mut().expect("a field").push_str(first);
                fields.extend(parts.map(str::to_owned));
            }
            _ => fields.last_mut().expect("a field").push_str(piece),
        }
    }
    let headings: Vec<&str> = headings.split(',').collect();
    assert_eq!(headings.len(), fields.len(), "{csv}");
    headings.into_iter().zip(fields).collect()
}

#[test]
fn mismatches_are_counted_in_every_form_whatever_they_end() {
    let user = User::new();
    let data = "filename=blocks\nsize=256k\nbs=4k\nverify=pattern\nverify_pattern=0x5a\n";
    let mut bytes = vec![0x5a; 256 << 10];
    for at in [9000, 20_000, 200_000] {
        bytes[at] ^= 1;
    }
    fs::write(user.file("blocks"), bytes).unwrap();
    // Options; blocks, mismatches and unread blocks; whether the job fails.
    let cases: [(&str, [u64; 3], bool); 5] = [
        ("rw=read", [64, 3, 0], true),
        ("rw=write\nverify_only", [64, 3, 0], true),
        ("rw=read\nverify_fatal=1", [3, 1, 0], true),
        ("rw=write\nverify_only\nverify_fatal=1", [3, 1, 61], true),
        ("rw=read\ncontinue_on_error=verify", [64, 3, 0], false),
    ];
    for (options, counts, fails) in cases {
        let job = format!("[j]\n{options}\n{data}");
        fs::write(user.file("check.fio"), job).unwrap();
        let run = |form: &str| {
            let line = format!("run check.fio --runs 1 --format {form}");
            user.run(&words(&line)).expect(i32::from(fails), &[])
        };
        let document = run("json").json();
        let result = &document["runs"][0]["results"][0];
        let names = ["blocks", "mismatches", "unread_blocks"];
        let counted = names.map(|name| result["verified"][name].as_u64());
        assert_eq!(counted, counts.map(Some), "{options}: {result}");
        let failure = &result["failure"];
        assert_eq!(failure.is_null(), !fails, "{options}: {result}");
        let worker = &result["repetitions"][0]["workers"][0]["failure"];
        assert_eq!(worker, failure, "{options}: {result}");
        let csv = run("csv").stdout;
        let record = record(&csv);
        let fields = ["verified_blocks", "mismatches", "unread_blocks"];
        let counted = fields.map(|name| record[name].parse::<u64>().expect("a count"));
        assert_eq!(counted, counts, "{options}: {record:?}");
        let message = failure["message"].as_str().unwrap_or_default();
        assert_eq!(record["failure"], message, "{options}: {record:?}");
        let note = format!("{} not as they were written", counts[1]);
        run("table").shows(&[&note]);
    }
}

/// First bytes of a block with a header.
const MAGIC: [u8; 2] = [0xca, 0xac];

/// Memory for direct I/O, which is aligned to a page.
#[repr(align(4096))]
struct Page([u8; 4096]);

/// Pages of a file, read and written past the page cache where the file system allows it: a
/// page that is cached here makes the kernel fail a direct write of the program to it.
struct Pages {
    file: fs::File,
    page: Page,
}

impl Pages {
    /// Opens a file that a run may have removed meanwhile.
    fn open(path: &Path) -> Option<Self> {
        let open = |flags: OFlags| {
            let mut options = fs::File::options();
            options.read(true).write(true);
            options.custom_flags(flags.bits().cast_signed()).open(path)
        };
        let file = open(OFlags::DIRECT)
            .or_else(|_| open(OFlags::empty()))
            .ok()?;
        let page = Page([0; 4096]);
        Some(Self { file, page })
    }

    /// Tests whether the block at `offset` was written.
    fn has_header(&mut self, offset: u64) -> bool {
        let is_read = self.file.read_exact_at(&mut self.page.0, offset).is_ok();
        is_read && self.page.0[..2] == MAGIC
    }

    fn damage(&mut self, offset: u64) {
        self.page.0.fill(b'x');
        let written = self.file.write_all_at(&self.page.0, offset);
        written.expect("the page is written");
    }
}

#[test]
fn a_program_counts_the_mismatches_that_end_its_run() {
    let user = User::new();
    let line = "run sequential --on ./target --set program.write_share=1 --set \
                program.area_bytes=1M --size 1M --set program.block_bytes=16K --set \
                program.rate_iops=15 --runs 2 --verify --format json";
    const BLOCK_BYTES: u64 = 16 << 10;
    let mut process = user.start(&words(line));
    while process.is_running() {
        // The folder of the run, while there is one.
        for folder in fs::read_dir(user.target()).expect("a folder").flatten() {
            let Some(mut pages) = Pages::open(&folder.path().join("load")) else {
                continue;
            };
            // The program has finished with a block when the block after the next is written.
            if pages.has_header(3 * BLOCK_BYTES) && pages.has_header(5 * BLOCK_BYTES) {
                pages.damage(3 * BLOCK_BYTES);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let run = process
        .finish()
        .expect(1, &["1 of 64 blocks differ"])
        .json();
    let result = &run["runs"][0]["results"][0];
    // The first repetition does not count, and its blocks do.
    assert_eq!(result["verified"]["blocks"], 64, "{result}");
    assert_eq!(result["verified"]["mismatches"], 1, "{result}");
    let message = result["failure"]["message"].as_str().expect("a message");
    assert!(message.contains("load: byte 49152: no header"), "{message}");
}

#[test]
fn blocks_that_were_not_read_back_are_told_in_every_form() {
    let user = User::new();
    let job = "[j]\nrw=randwrite\nbs=4k\nsize=100g\nnumber_ios=3000\nverify=crc32c\n\
               ioengine=libaio\niodepth=32\nruntime=4\n";
    fs::write(user.file("job.fio"), job).unwrap();
    let run = |form: &str| {
        let line = format!("run job.fio --on bare-sata-7200 --runs 1 --format {form}");
        user.run(&words(&line)).expect(0, &[])
    };
    let document = run("json").json();
    let result = &document["runs"][0]["results"][0];
    let count = |name: &str| result["verified"][name].as_u64().expect("a number");
    let (read, unread) = (count("blocks"), count("unread_blocks"));
    assert!(unread > 0, "{result}");
    // Of a drive that is gone when the run ends nothing is left to verify.
    let state = user.file("local-j-0-verify.state");
    assert!(!state.exists(), "{}", state.display());
    assert_eq!(read + unread, count("written_bytes") / 4096, "{result}");
    assert_eq!(count("mismatches"), 0, "{result}");
    let first = match read {
        0 => format!("0 of {unread} blocks read back"),
        read => format!("{read} of {} blocks (", read + unread),
    };
    let last = match read {
        0 => "the job ended before".to_owned(),
        _ => format!("{unread} not read back: the job ended before"),
    };
    for form in ["table", "csv", "markdown"] {
        run(form).shows(&[&first, &last]);
    }
    let page = user.run(&words("report last --output -"));
    page.expect(0, &[]).shows(&[&first, &last]);
}

/// Block device of a file, which root can make.
struct LoopDevice(String);

impl LoopDevice {
    fn attach(file: &Path) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(file)
            .output();
        let made = made.ok().filter(|made| made.status.success())?;
        Some(Self(
            String::from_utf8_lossy(&made.stdout).trim().to_owned(),
        ))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn damage_on_a_device_is_found_by_its_place() {
    let user = User::new();
    let image = user.file("image");
    fs::write(&image, vec![0; 8 << 20]).unwrap();
    let Some(device) = LoopDevice::attach(&image) else {
        eprintln!("SKIPPED damage_on_a_device_is_found_by_its_place: no loop device can be made");
        return;
    };
    let path = &device.0;
    let orders = [
        "rw=write\nbs=64k",
        "rw=randwrite\nbs=4k\nsize=1m",
        "rw=randwrite\nbsrange=4k-16k\nsize=1m",
    ];
    for order in orders {
        let job = format!("[j]\nfilename={path}\n{order}\nverify=crc32c\n");
        fs::write(user.file("write.fio"), &job).unwrap();
        fs::write(user.file("only.fio"), format!("{job}verify_only\n")).unwrap();
        let write = format!("run write.fio --runs 1 --destroy-data-on {path}");
        let told = user.run(&words(&write));
        told.expect(0, &[])
            .shows(&["read back and compared, all as they were written"]);
        let only = words("run only.fio --runs 1");
        user.run(&only).expect(0, &[]).shows(&["all as they were"]);
        let flip = |at: u64| {
            let file = fs::File::options().read(true).write(true).open(path);
            let file = file.expect("a device");
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("a byte");
            file.write_all_at(&[byte[0] ^ 4], at).expect("a byte");
            file.sync_all().expect("a sync");
        };
        flip(131_072 + 1000);
        let place = format!("{path}: byte 131072: ");
        user.run(&only)
            .expect(1, &["1 of ", &place, "byte 132072: expected"]);
        flip(131_072 + 1000);
        user.run(&only).expect(0, &[]);
    }
}
