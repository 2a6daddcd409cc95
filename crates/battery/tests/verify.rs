//! Blocks that are verified: what this program wrote by fio, what fio wrote by this program,
//! and planted damage by both.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_battery::{Medium, Program};
use rand_core::Rng;
use rand_pcg::Pcg64;
use std::process::Command;
use std::sync::Arc;
use verification::installed::is_fio_installed;
use verification::{
    KINDS, by_fio, flip, flip_last, on_host, on_model, program_on_host, programs_on_model,
};

/// Orders of writes, for every kind.
const ORDERS: &[&str] = &["bs=4k rw=write", "bs=4k rw=randwrite"];

/// Shapes of blocks, for kinds with headers of several sizes.
const SHAPES: &[&str] = &[
    "bs=4k rw=write verify_interval=512",
    "bs=4k rw=randwrite verify_offset=512",
    "bs=1000 rw=write size=50000",
    "bs=8k rw=write buffer_compress_percentage=40 verify_interval=2k verify_offset=300",
];
const SHAPED_KINDS: &[&str] = &[
    "verify=crc32c",
    "verify=sha512",
    "verify=sha512 verify_pattern=0xfff",
    "verify=sha512 verify_pattern=0xaa%o",
    "verify=sha3-384",
    "verify=crc32c verify_pattern=0xaa%o",
];

/// Each kind in each order, and some in each shape; each has a file of its own.
fn cases() -> Vec<String> {
    let in_order = KINDS
        .iter()
        .flat_map(|kind| ORDERS.iter().map(move |order| (kind, order)));
    let shapes = |kind| SHAPES.iter().map(move |shape| (kind, shape));
    let all = in_order.chain(SHAPED_KINDS.iter().flat_map(shapes));
    let numbered = all.enumerate();
    numbered
        .map(|(number, (kind, shape))| format!("filename=f{number} {kind} size=64k {shape}"))
        .collect()
}

/// The same section that reads in order, in blocks that a header stands in front of.
fn reading(case: &str) -> String {
    let order = ["rw=randwrite", "rw=write"];
    order.iter().fold(case.to_owned(), |case, order| {
        case.replace(order, "rw=read")
    })
}

#[test]
fn fio_verifies_what_was_written_here_and_finds_what_was_changed() {
    if !is_fio_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let cases = cases();
    for case in &cases {
        let options = format!("{case} do_verify=0");
        on_host(folder.path(), &options).unwrap_or_else(|error| panic!("{options}: {error}"));
    }
    let reads: Vec<String> = cases.iter().map(|case| reading(case)).collect();
    for (case, error) in reads.iter().zip(by_fio(folder.path(), &reads)) {
        assert_eq!(error, 0, "{case}");
    }
    let again: Vec<String> = cases
        .iter()
        .map(|case| format!("{case} verify_only"))
        .collect();
    for (case, error) in again.iter().zip(by_fio(folder.path(), &again)) {
        assert_eq!(error, 0, "{case}");
    }
    for number in 0..cases.len() {
        flip_last(&folder.path().join(format!("f{number}")));
    }
    for (case, error) in reads.iter().zip(by_fio(folder.path(), &reads)) {
        let sees_it = !["=meta", "=null"].iter().any(|kind| case.contains(kind));
        assert_eq!(error != 0, sees_it, "{case}");
    }
}

#[test]
fn what_fio_wrote_is_verified_here_and_changes_are_found() {
    if !is_fio_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let cases = cases();
    let writes: Vec<String> = cases
        .iter()
        .map(|case| format!("{case} do_verify=0"))
        .collect();
    for (case, error) in writes.iter().zip(by_fio(folder.path(), &writes)) {
        assert_eq!(error, 0, "{case}");
    }
    let path = |number: usize| folder.path().join(format!("f{number}"));
    for (number, case) in cases.iter().enumerate() {
        let all = [reading(case), format!("{case} verify_only")];
        for options in &all {
            let load = on_host(folder.path(), options);
            let load = load.unwrap_or_else(|error| panic!("{options}: {error}"));
            let verified = load.verified_blocks.expect("it verifies");
            assert_eq!(verified.block_count, load.read.request_count(), "{options}");
            assert_eq!(
                (verified.mismatch_count, load.write.request_count()),
                (0, 0),
                "{options}"
            );
        }
        flip_last(&path(number));
        for options in &all {
            let found = on_host(folder.path(), options);
            let sees_it = !["=meta", "=null"].iter().any(|kind| case.contains(kind));
            assert_eq!(found.is_err(), sees_it, "{options}: {found:?}");
        }
    }
}

/// Damage that is planted into a file, and the text that tells it.
fn plant(
    image: &mut [u8],
    stale: &[u8],
    random: &mut Pcg64,
    block_bytes: usize,
) -> (&'static str, usize) {
    let blocks = image.len() / block_bytes;
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let (block, kind) = (below(blocks), below(3));
    let at = block * block_bytes;
    let own = at..at + block_bytes;
    match kind {
        0 => {
            let byte = at + below(block_bytes);
            image[byte] ^= 1 << below(8);
            ("", byte)
        }
        1 => {
            image[own.clone()].copy_from_slice(&stale[own]);
            ("block of another run", at)
        }
        _ => {
            let neighbour = (block + 1 + below(blocks - 1)) % blocks * block_bytes;
            image.copy_within(neighbour..neighbour + block_bytes, at);
            ("block written at another offset", at)
        }
    }
}

#[test]
fn each_planted_damage_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    let kinds = KINDS
        .iter()
        .filter(|kind| kind.starts_with("verify=") && !kind.contains("null"));
    let kinds: Vec<&&str> = kinds.filter(|kind| !kind.contains("pattern")).collect();
    let mut found = 0;
    for seed in 0..100_u64 {
        let mut random = Pcg64::new(u128::from(seed), 1);
        let kind = kinds[seed as usize % kinds.len()];
        let order = ["rw=write", "rw=randwrite"][seed as usize % 2];
        let options = format!("filename=f size=64k bs=4k {kind} {order}");
        let write = |generation| {
            let options = format!("{options} do_verify=0 randseed={generation}");
            on_host(folder.path(), &options).unwrap_or_else(|error| panic!("{options}: {error}"));
            std::fs::read(&path).expect("a file")
        };
        let (stale, mut image) = (write(1), write(2));
        let verify = format!("{options} randseed=2 verify_only");
        let control = on_host(folder.path(), &verify);
        assert!(control.is_ok(), "seed {seed}, {verify}: {control:?}");
        let (tells, at) = plant(&mut image, &stale, &mut random, 4096);
        std::fs::write(&path, &image).expect("a file");
        let error = on_host(folder.path(), &verify).expect_err(&format!("seed {seed}, {verify}"));
        let text = error.to_string();
        let block = format!("/f: byte {}:", at / 4096 * 4096);
        let byte = format!("byte {at}:");
        assert!(
            text.contains("1 of 16 blocks differ"),
            "seed {seed}: {text}"
        );
        assert!(
            text.contains(&block) || text.contains(&byte),
            "seed {seed}, byte {at}: {text}"
        );
        assert!(text.contains(tells), "seed {seed}: {text}");
        assert!(
            text.contains("expected ") && text.contains(", got "),
            "seed {seed}: {text}"
        );
        found += 1;
    }
    assert_eq!(found, 100);
}

/// Sections whose reads fio counts, run by both.
const COUNTED: &[&str] = &[
    "rw=write size=256k verify=crc32c",
    "rw=randwrite size=256k verify=md5",
    "rw=randrw size=256k verify=crc32c verify_backlog=1000",
    "rw=write size=256k verify=crc32c verify_backlog=8",
    "rw=randwrite size=256k verify=crc32c verify_backlog=16 verify_backlog_batch=4",
    "rw=write size=64k verify=crc32c loops=3",
    "rw=write size=64k verify=crc32c do_verify=0",
    "rw=write size=64k verify=null",
    "rw=write size=64k number_ios=5 verify=crc32c",
    "rw=write size=64k verify=crc32c experimental_verify=1",
    "rw=write size=64k nrfiles=4 verify=crc32c verify_async=2",
    "rw=write size=64k verify=crc32c fsync=4 end_fsync=1",
    "rw=write size=4m ioengine=io_uring iodepth=16 verify=crc32c",
    "rw=write size=4m time_based runtime=1 verify=crc32c",
];

#[test]
fn as_many_blocks_are_read_back_as_by_fio() {
    if !is_fio_installed() {
        return;
    }
    for options in COUNTED {
        let folder = tempfile::tempdir().expect("a folder");
        let load = on_host(folder.path(), options);
        let load = load.unwrap_or_else(|error| panic!("{options}: {error}"));
        let arguments = options.split(' ').map(|option| format!("--{option}"));
        let output = Command::new("fio")
            .args(["--name=job", "--output-format=json"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("fio runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let start = text
            .find('{')
            .unwrap_or_else(|| panic!("{options}: {output:?}"));
        let json: serde_json::Value = serde_json::from_str(&text[start..]).expect("JSON");
        let count = |key: &str| json["jobs"][0][key]["total_ios"].as_u64();
        if options.contains("time_based") {
            assert_eq!(
                (load.read.request_count(), count("read")),
                (0, Some(0)),
                "{options}"
            );
            continue;
        }
        // Of a mix both draw their own directions.
        if !options.contains("randrw") {
            assert_eq!(
                Some(load.write.request_count()),
                count("write"),
                "{options}"
            );
            assert_eq!(Some(load.read.request_count()), count("read"), "{options}");
        }
        let verified = load
            .verified_blocks
            .map(|verified| (verified.block_count, verified.mismatch_count));
        let read_back =
            (!options.contains("do_verify=0")).then_some((load.write.request_count(), 0));
        assert_eq!(verified, read_back, "{options}");
    }
}

#[test]
fn blocks_that_are_written_again_are_the_latest() {
    let folder = tempfile::tempdir().expect("a folder");
    for options in [
        "rw=randwrite norandommap io_size=1m size=64k",
        "rw=randwrite norandommap io_size=1m size=64k ioengine=io_uring iodepth=16",
        "rw=randwrite norandommap io_size=1m size=64k bsrange=4k-16k ioengine=io_uring iodepth=8",
        "rw=write loops=3 size=64k direct=1",
        "rw=randwrite size=256k ioengine=mmap",
        "rw=randwrite size=256k ioengine=splice",
        "rw=randwrite size=256k ioengine=libaio direct=1 iodepth=4",
        "rw=randrw norandommap io_size=1m size=64k verify_backlog=4",
    ] {
        let options = format!("{options} verify=crc32c");
        let load = on_host(folder.path(), &options);
        let load = load.unwrap_or_else(|error| panic!("{options}: {error}"));
        let verified = load.verified_blocks.expect("it verifies");
        assert!(
            verified.block_count > 0 && verified.mismatch_count == 0,
            "{options}: {verified:?}"
        );
    }
}

#[test]
fn the_first_difference_is_the_last_where_it_is_fatal() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "filename=f size=64k bs=4k rw=write verify=crc32c";
    on_host(folder.path(), options).expect("it writes");
    for at in [5000, 20_000, 30_000] {
        flip(&folder.path().join("f"), at);
    }
    let all = on_host(folder.path(), &format!("{options} verify_only"));
    let all = all.expect_err("three differ").to_string();
    assert!(all.contains("3 of 16 blocks differ"), "{all}");
    for at in [5000, 20_000, 30_000] {
        assert!(all.contains(&format!("byte {at}: expected")), "{all}");
    }
    let tolerant = format!("{options} verify_only continue_on_error=verify");
    let counted = on_host(folder.path(), &tolerant).expect("they are counted");
    let counted = counted.verified_blocks.expect("it verifies");
    assert_eq!((counted.block_count, counted.mismatch_count), (16, 3));
    let first = on_host(
        folder.path(),
        &format!("{options} verify_only verify_fatal=1"),
    );
    let first = first.expect_err("it ends").to_string();
    assert!(
        first.contains("byte 5000: expected") && !first.contains("20000"),
        "{first}"
    );
}

#[test]
fn what_is_not_there_is_not_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "filename=f size=64k rw=write verify=crc32c verify_only";
    let missing = on_host(folder.path(), options)
        .expect_err("no file")
        .to_string();
    assert!(
        missing.contains("nothing to verify") && missing.contains("is not there"),
        "{missing}"
    );
    std::fs::write(folder.path().join("f"), [0; 4096]).expect("a file");
    let short = on_host(folder.path(), options)
        .expect_err("a short one")
        .to_string();
    assert!(short.contains("has 4096 bytes instead of 65536"), "{short}");
    std::fs::write(folder.path().join("f"), [0; 65536]).expect("a file");
    for order in [
        "",
        " time_based runtime=5",
        " time_based runtime=5 norandommap",
    ] {
        let options = format!("{options}{order}").replace("rw=write", "rw=randwrite");
        let zeroes = on_host(folder.path(), &options)
            .expect_err("zeroes")
            .to_string();
        assert!(
            zeroes.contains("no header: expected 0xacca, got 0x0"),
            "{options}: {zeroes}"
        );
    }
}

/// On a modelled computer, real bytes go through its caches and onto its drives.
#[test]
fn contents_are_verified_on_models() {
    let write = "filename=f size=256k bs=4k verify=crc32c";
    for (rig, medium) in [
        ("bare-fixed", Medium::Device),
        ("vax780-sc780-eagle", Medium::Directory),
        ("bare-nvme-tlc", Medium::Device),
    ] {
        let direct = if medium == Medium::Device {
            " direct=1"
        } else {
            ""
        };
        for order in [
            "rw=write",
            "rw=randwrite",
            "rw=randwrite ioengine=io_uring iodepth=8",
        ] {
            let section = format!("{write} {order}{direct}");
            let other = format!("{section} verify_only");
            let pattern =
                format!("{section} verify_only").replace("verify=crc32c", "verify_pattern=0xaa");
            let outcomes = on_model(rig, medium, &[&section, &other, &pattern]);
            let [written, again, of_pattern] = &outcomes[..] else {
                panic!("{rig}: {outcomes:?}")
            };
            for load in [written, again] {
                let load = load
                    .as_ref()
                    .unwrap_or_else(|error| panic!("{rig}, {section}: {error}"));
                let verified = load.verified_blocks.as_ref().expect("it verifies");
                assert_eq!(
                    (verified.block_count, verified.mismatch_count),
                    (64, 0),
                    "{rig}, {section}"
                );
                assert_eq!(load.read.request_count(), 64, "{rig}, {section}");
            }
            let text = of_pattern.as_ref().expect_err("another kind").to_string();
            assert!(
                text.contains("64 of 64 blocks differ"),
                "{rig}, {section}: {text}"
            );
        }
    }
}

/// A program of the battery that verifies what it writes.
fn verifying(name: &str, parameters: &[(&str, &str)]) -> Program {
    let mut program = Program::from_name(name).expect("a program");
    let common = [
        ("write_share", "1"),
        ("verify", "yes"),
        ("area_bytes", "1M"),
    ];
    for (key, value) in common.iter().chain(parameters) {
        program
            .set_parameter(key, value)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    program
}

const PROGRAMS: &[(&str, &[(&str, &str)])] = &[
    ("random", &[("depth", "8")]),
    ("random", &[("block_bytes", "4K:1,16K:1"), ("depth", "4")]),
    ("random", &[("write_share", "0.5"), ("sync_every", "16")]),
    ("sequential", &[("block_bytes", "64K")]),
];

#[test]
fn programs_verify_what_they_wrote_and_do_not_measure_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, parameters) in PROGRAMS {
        let program = verifying(name, parameters);
        let of_models = [
            ("bare-fixed", Medium::Device),
            ("vax780-sc780-eagle", Medium::Directory),
        ];
        let of_models = of_models
            .map(|(rig, medium)| programs_on_model(rig, medium, vec![program.clone()]).remove(0));
        let of_host = program_on_host(folder.path(), &program);
        for outcome in of_models.into_iter().chain([of_host]) {
            let load = outcome.unwrap_or_else(|error| panic!("{name} {parameters:?}: {error}"));
            let verified = load.verified_blocks.expect("it verifies");
            assert!(
                verified.block_count > 0 && verified.mismatch_count == 0,
                "{name}: {verified:?}"
            );
            assert_eq!(verified.verification_kind, "crc32c");
            let moved = load.read.bytes + load.write.bytes;
            assert_eq!(
                moved,
                1 << 20,
                "{name} {parameters:?}: what is read back does not count"
            );
        }
    }
}

/// Somebody else writes over a block of a program that takes a third of a second.
#[test]
fn a_program_finds_a_block_that_somebody_else_wrote_over() {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    let folder = tempfile::tempdir().expect("a folder");
    let parameters = [("block_bytes", "16K"), ("rate_iops", "200")];
    let program = verifying("sequential", &parameters);
    let path = folder.path().join("load");
    let is_over = Arc::new(AtomicBool::new(false));
    let other = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(file) = std::fs::File::options().write(true).open(&path) {
                    file.write_all_at(b"somebody else's", 3 * 16384)
                        .expect("it writes");
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    let outcome = program_on_host(folder.path(), &program);
    is_over.store(true, Ordering::Relaxed);
    other.join().expect("it ends");
    let text = outcome.expect_err("a block differs").to_string();
    let named = "/load: byte 49152: no header: expected 0xacca, got 0x6f73";
    assert!(
        text.contains("1 of 64 blocks differ") && text.contains(named),
        "{text}"
    );
}
