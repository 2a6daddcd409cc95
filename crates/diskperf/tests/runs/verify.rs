//! What was written is read back and compared: by programs, by job files, and of files that
//! fio wrote.

use crate::support::{User, words};
use std::fs;
use std::process::Command;

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
