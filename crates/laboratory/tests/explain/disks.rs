//! What holds up a disk with a buffer and a link has a change that names it, with what it
//! gains: on drives of the catalogue.

use super::{Case, means};
use diskperf_laboratory::SizeChoice;
use diskperf_laboratory::explain::explain;
use diskperf_laboratory::timeline::CacheMode;
use std::sync::Arc;

/// By which share of its time a program is faster with each of these changes.
#[track_caller]
fn gains<const N: usize>(
    (what, system): (&'static str, &str),
    (bytes, settings): (u64, &[&str]),
    changes: [&str; N],
) -> [f64; N] {
    let case = Case {
        size: SizeChoice::Bytes(bytes),
        cache: CacheMode::Direct,
        ..Case::of(what, system)
    };
    let case = case.with(settings);
    let stop = Arc::default();
    let subject = case.subject().expect("a system");
    let (found, _) = explain(&subject, &means(&stop, true)).expect("it runs");
    let program = &found.programs[0];
    let all = &program.counterfactuals;
    let names: Vec<&str> = all.iter().map(|one| &*one.change).collect();
    changes.map(|change| {
        let found = all.iter().find(|one| one.change == change);
        let found = found.unwrap_or_else(|| panic!("{change} is not among {names:?}"));
        found.gain(program.account.elapsed)
    })
}

#[test]
fn a_slow_link_is_the_lever() {
    let slow = ["drive.link_bytes_per_s=5200000", "program.depth=2"];
    let [link, twice] = gains(
        ("sequential", "bare-sas-10k"),
        (16 << 20, &slow),
        ["link infinitely fast", "link twice as fast"],
    );
    assert!(link > 0.9, "{link}");
    assert!((twice - 0.5).abs() < 0.05, "{twice}");
}

#[test]
fn a_buffer_that_is_full_is_the_lever() {
    let random = ["program.write_share=1", "program.area_bytes=7T"];
    let [seek, buffer] = gains(
        ("random", "bare-sata-7200"),
        (4 << 20, &random),
        ["no seek", "drive.write_cache_extents=1024"],
    );
    assert!(seek > 0.3 && buffer > 0.3, "{seek}, {buffer}");
}

#[test]
fn a_media_cache_that_is_full_is_the_lever() {
    let small = [
        "program.write_share=1",
        "program.depth=4",
        "program.area_bytes=1T",
        "drive.media_cache_extents=3000",
    ];
    let [larger] = gains(
        ("random", "bare-smr-5400"),
        (13 << 20, &small),
        ["drive.media_cache_extents=6000"],
    );
    assert!(larger > 0.9, "{larger}");
}

#[test]
fn a_missed_revolution_is_the_lever() {
    let through = [
        "program.write_share=1",
        "program.block_bytes=4096",
        "drive.write_cache=false",
    ];
    let [met, kept] = gains(
        ("sequential", "bare-sata-7200"),
        (2 << 20, &through),
        ["no missed revolution", "drive.write_cache=true"],
    );
    assert!(met > 0.9 && kept > 0.9, "{met}, {kept}");
}
