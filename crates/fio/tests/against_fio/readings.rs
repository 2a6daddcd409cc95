//! What fio reads in silence as something else is refused with fio's reading named.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::fmt::Write;

use crate::{Fio, Parsed, ours};

/// What fio takes, and its reading.
const SILENT: &[(&str, &str, i128)] = &[
    ("bs= 4k", "bs", 4),
    ("bs=4 k", "bs", 4),
    ("size=1.5g", "size", 1),
    ("size=1e6", "size", 1),
    ("size=4x", "size", 4),
    ("size=2*1024", "size", 2),
    ("runtime=5min", "runtime", 5),
    ("runtime=5sec", "runtime", 5),
    ("runtime=1m30s", "runtime", 1),
    ("thinktime=2.5ms", "thinktime", 2),
    ("log_avg_msec=1s", "log_avg_msec", 1),
    ("rate_cycle=1s", "rate_cycle", 1),
    ("iodepth=8x", "iodepth", 8),
    ("thread=5", "thread", 5),
    ("direct=1x", "direct", 1),
    ("invalidate=-1", "invalidate", -1),
    ("size=9223372036854775807k", "size", 18446744073709550592),
];

#[test]
fn what_fio_reads_in_silence_is_refused_with_its_reading() {
    let Some(fio) = Fio::installed() else { return };
    let texts: Vec<(String, &str)> = SILENT
        .iter()
        .map(|(line, key, _)| ((*line).to_owned(), *key))
        .collect();
    for ((line, key, reading), theirs) in SILENT.iter().zip(fio.parse(&texts)) {
        let text = format!("[x]\n{line}\n");
        assert!(theirs.is_taken, "{line}");
        // The last line that prints a value may be a second round over the same text.
        assert_eq!(theirs.outs.first(), Some(reading), "{line}");
        if *key == "log_avg_msec" {
            assert_eq!(ours(&text).expect("harmless").ignored.len(), 1);
            continue;
        }
        let refused = ours(&text).expect_err(line).render(false);
        let signed = if *reading > i128::from(i64::MAX) {
            -1024
        } else {
            *reading
        };
        assert!(
            refused.contains(&format!("fio reads {signed}")),
            "{line}: {refused}"
        );
    }
}

/// What both refuse.
#[test]
fn what_fio_drops_is_refused() {
    let Some(fio) = Fio::installed() else { return };
    let lines = [
        "direct=true",
        "direct",
        "direct=2",
        "bogus=3",
        "BS=4k",
        "bs=0",
        "bs=",
        "iodepth=0",
        "rwmixread=101",
        "bsrange=4k",
        "rw=readrand",
        "verify=crc32cx",
        "randseed=abc",
        "random_distribution=zipf:1",
        "random_distribution=pareto:1.5",
        "io_size=150%",
        "size=99999999999999999999",
        "fixedbufs",
        "size=k",
        "filename=",
        "ss=lot:1%",
        "(2)=3",
        "size=(2m+4k)x",
    ];
    let texts: Vec<(String, &str)> = lines.map(|line| (line.to_owned(), "")).to_vec();
    for (line, theirs) in lines.iter().zip(fio.parse(&texts)) {
        let text = format!("[x]\n{line}\n");
        assert!(!theirs.is_taken, "fio takes {line}");
        let refused = ours(&text).expect_err(line).render(false);
        assert!(refused.contains("job.fio:2:"), "{line}: {refused}");
    }
}

/// Debian's fio works out no expression: the one thing that is taken here and not there.
#[test]
fn expressions_are_taken_with_a_warning() {
    let cases = [
        ("size=(2m+4k)", 2101248u64),
        ("size=(7%4)k", 3072),
        ("size=(2^3^2)", 512),
        ("bs=1\nsize=(7-2*3)", 1),
        ("size=( 2 * ( 1k + 0x400 ) )", 4096),
        ("size=(-4k+8k)", 4096),
    ];
    for (line, bytes) in cases {
        let file = ours(&format!("[x]\nbs=512\n{line}\n")).unwrap_or_else(|e| panic!("{e}"));
        let size = file.jobs[0].target.size.and_then(|size| size.bytes());
        assert_eq!(size, Some(bytes), "{line}");
        assert!(
            file.warnings[0].render(false).contains("Debian's fio"),
            "{line}"
        );
    }
    let job = &ours("[x]\nruntime=(2*30)\nramp_time=(1500ms*2)\nthinktime=(5+5)\n")
        .expect("a job")
        .jobs[0];
    assert_eq!(job.durations.runtime_us, 60_000_000);
    assert_eq!(job.durations.ramp_us, 3_000_000);
    assert_eq!(job.think.pause_us, 10);
}

/// Texts that look like numbers: ours either has fio's value, or says what fio makes of
/// it, or that fio drops the job.
#[test]
fn numbers_are_fios_or_said_to_be() {
    let Some(fio) = Fio::installed() else { return };
    let asked = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed = asked.and_then(|asked| asked.parse().ok()).unwrap_or(11);
    println!("PROPTEST_RNG_SEED={seed}");
    let mut runner = TestRunner::new(Config {
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    });
    let number = "[ +-]?[0-9]{1,6}[ .kKmMgGtTpPiIbBsSuUhHdDxz0-9*e]{0,4}";
    let hexadecimal = "0[xX][0-9a-fg]{0,5}";
    let text = prop_oneof![4 => number, 1 => hexadecimal];
    let keys = prop::sample::select(vec!["number_ios", "runtime", "latency_target", "randseed"]);
    let many = prop::collection::vec((keys, text), 400);
    let many = many.new_tree(&mut runner).expect("texts").current();
    let texts = many
        .iter()
        .map(|(key, text)| (format!("{key}={}", text.trim_end()), *key));
    let texts: Vec<(String, &str)> = texts.collect();
    let mut wrong = String::new();
    for ((text, key), theirs) in texts.iter().zip(fio.parse(&texts)) {
        if let Err(why) = compare(text, key, &theirs) {
            writeln!(wrong, "{text}: {why}; fio: {theirs:?}").expect("a string");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn compare(text: &str, key: &str, theirs: &Parsed) -> Result<(), String> {
    let value = theirs.outs.first().copied();
    let refused = match ours(&format!("[x]\n{text}\n")) {
        Ok(file) => {
            let job = &file.jobs[0];
            let ours = match key {
                "number_ios" => job.target.ios_max.unwrap_or(0),
                "runtime" => job.durations.runtime_us,
                "latency_target" => job.latency.target_us,
                _ => job.random.seed,
            };
            let same = theirs.is_taken && value == Some(ours.into());
            return same.then_some(()).ok_or(format!("taken as {ours}"));
        }
        Err(errors) => errors.render(false),
    };
    if let Some((_, reads)) = refused.split_once("fio reads ") {
        let reads: String = reads.chars().take_while(|c| !c.is_whitespace()).collect();
        let reads: i64 = reads.parse().map_err(|_| refused.clone())?;
        // fio prints without a sign.
        let same = value == Some(i128::from(reads as u64));
        return same.then_some(()).ok_or(refused);
    }
    if refused.contains("fio drops the job") && theirs.is_taken {
        return Err(refused);
    }
    Ok(())
}
