//! The flash drives of the catalogue against what their data sheets, and the facts' check
//! model, lead one to expect (facts 5).

use super::*;
use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_machine::specification::Specification;
use diskperf_sim::Stream;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is expected of a drive: a file of `catalogue/expected-flash`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    drive: String,
    value: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    what: What,
    depth: u32,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    expected: f64,
    tolerance_share: f64,
    source: String,
    /// It is not met yet, and not tried.
    #[serde(default)]
    open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// The mean latency of 4 KiB reads at random, of a drive that was filled at random.
    RandomReadUs,
    /// How many of them in a second.
    RandomReadIops,
    /// The same of a gibibyte just written: of the cache of one bit a cell, if there is one.
    CachedReadUs,
    CachedReadIops,
    /// The mean latency of 4 KiB writes at random to a drive that was idle.
    RandomWriteUs,
    /// 4 KiB writes at random to a full drive in its steady state.
    SteadyWriteIops,
    SteadyAmplification,
    /// 128 KiB reads, one behind the other, of what was written so.
    SequentialReadMbPerS,
    /// 128 KiB writes, one behind the other, to a drive that was never written.
    SequentialWriteMbPerS,
    /// The same when the cache of one bit a cell is full.
    WritePastCacheMbPerS,
    /// 4 KiB writes, each followed by a flush where the drive needs one.
    SyncedWritesPerS,
    /// 70 % reads and 30 % writes of 4 KiB at random, on a full drive in its steady state.
    MixedIops,
    MixedReadP99Us,
}

use What::*;

fn expectations() -> Vec<Expectations> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../catalogue/expected-flash"
    );
    let entries = std::fs::read_dir(folder).expect("the catalogue");
    let mut all: Vec<Expectations> = entries
        .map(|entry| {
            let path = entry.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("text");
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect();
    all.sort_by(|one, other| one.drive.cmp(&other.drive));
    all
}

/// The drive with other values of these keys, as the command line gives them.
fn set(drive: &str, settings: &[(&str, &str)]) -> Result<FlashSpecification, String> {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(&format!("bare-{drive}"), &settings);
    let read = resolved.and_then(Specification::read);
    let (read, _) = read.map_err(|error| error.to_string())?;
    Ok(read.drives[0].flash().expect("a flash drive").clone())
}

/// Requests in a closed loop.
struct Loop<'h> {
    host: &'h mut Host,
    depth: u32,
    draws: Stream,
}

/// What a stretch of a loop came to.
struct Stretch {
    seconds: f64,
    read_us: Vec<f64>,
    done: u64,
}

impl<'h> Loop<'h> {
    fn new(host: &'h mut Host, depth: u32) -> Self {
        let draws = Streams::new(SEED).stream("places");
        Self { host, depth, draws }
    }

    /// Asks for what `next` draws until `before` and then `count` requests are done.
    fn run(
        &mut self,
        (before, count): (u64, u64),
        mut next: impl FnMut(&mut Stream, u64) -> (Operation, u64, u32),
    ) -> Stretch {
        let mut asked = 0;
        let mut ask = |host: &mut Host, draws: &mut Stream| {
            let (operation, sector, sectors) = next(draws, asked);
            host.ask(operation, sector, sectors);
            asked += 1;
        };
        for _ in 0..self.depth {
            ask(self.host, &mut self.draws);
        }
        let mut begun = self.host.now;
        let mut read_us = Vec::new();
        for done in 0..before + count {
            if done == before {
                begun = self.host.now;
            }
            let (_, request) = self.host.wait();
            let ns = request.spans.marked().0 - request.spans.issued().0;
            if done >= before && request.operation == READ {
                read_us.push(ns as f64 / 1000.0);
            }
            ask(self.host, &mut self.draws);
        }
        let seconds = (self.host.now - begun).seconds();
        for _ in 0..self.depth {
            self.host.wait();
        }
        read_us.sort_by(f64::total_cmp);
        Stretch {
            seconds,
            read_us,
            done: count,
        }
    }
}

impl Stretch {
    fn mean_us(&self) -> f64 {
        self.read_us.iter().sum::<f64>() / self.read_us.len() as f64
    }

    fn iops(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    fn mb_per_s(&self) -> f64 {
        self.iops() * 131_072.0 / 1e6
    }
}

/// A gibibyte, in sectors.
const GIBIBYTE: u64 = 1 << 18;

/// How a drive was written before it is measured.
fn past(what: What) -> &'static str {
    match what {
        RandomReadUs | RandomReadIops | SteadyWriteIops | SteadyAmplification | MixedIops
        | MixedReadP99Us => "random",
        _ => "fresh",
    }
}

fn fill(host: &mut Host, sectors: u64) {
    let calls = sectors / 32;
    Loop::new(host, 32).run((0, calls), |_, call| (WRITE, call % calls * 32, 32));
    // Not so long that the cache is folded.
    let rested = host.now + Time::from_millis(500);
    host.until(rested);
}

/// The drive with superblocks of a quarter, so that a steady state is reached in a quarter of
/// the writes: what is amplified hangs on shares alone.
fn quartered(of: &FlashSpecification) -> FlashSpecification {
    let mut specification = of.clone();
    let parts = 4;
    specification.geometry.word_lines /= parts;
    specification.times.erase.0 /= u64::from(parts);
    let layer = &mut specification.layer;
    (layer.logical_units, layer.filled) = (layer.logical_units / parts, layer.filled / parts);
    specification
}

/// Units that the cache of one bit a cell always holds.
fn cache_units(of: &FlashSpecification) -> u64 {
    let geometry = &of.geometry;
    let pages = geometry.dies() * geometry.planes * geometry.word_lines;
    let superblocks = of.cache.map_or(0, |cache| cache.fixed_superblocks);
    u64::from(pages * geometry.page_units()) * u64::from(superblocks)
}

fn found(specification: &FlashSpecification, (what, depth): (What, u32)) -> f64 {
    let steady = matches!(
        what,
        SteadyWriteIops | SteadyAmplification | MixedIops | MixedReadP99Us
    );
    let specification = match steady {
        true => quartered(specification),
        false => specification.clone(),
    };
    let mut host = Host::new(&specification);
    let sectors = host.flash.sectors();
    let anywhere = |draws: &mut Stream| draws.below(sectors);
    match what {
        RandomReadUs | RandomReadIops => {
            let of = |draws: &mut Stream, _| (READ, anywhere(draws), 1);
            let stretch = Loop::new(&mut host, depth).run((1000, 40_000), of);
            if what == RandomReadUs {
                stretch.mean_us()
            } else {
                stretch.iops()
            }
        }
        CachedReadUs | CachedReadIops => {
            fill(&mut host, GIBIBYTE);
            let of = |draws: &mut Stream, _| (READ, draws.below(GIBIBYTE), 1);
            let stretch = Loop::new(&mut host, depth).run((1000, 40_000), of);
            if what == CachedReadUs {
                stretch.mean_us()
            } else {
                stretch.iops()
            }
        }
        RandomWriteUs => {
            let of = |draws: &mut Stream, _| (WRITE, anywhere(draws), 1);
            let stretch = Loop::new(&mut host, depth).run((0, 2000), of);
            stretch.seconds * 1e6 / stretch.done as f64
        }
        SteadyWriteIops | SteadyAmplification => {
            let of = |draws: &mut Stream, _| (WRITE, anywhere(draws), 1);
            // What the buffer takes is over, and collection is even.
            let cached = cache_units(&specification);
            Loop::new(&mut host, depth).run((0, 400_000 + cached), of);
            let before = *host.flash.traffic();
            let stretch = Loop::new(&mut host, depth).run((0, 300_000), of);
            match what {
                SteadyWriteIops => stretch.iops(),
                _ => host.flash.traffic().since(&before).amplification(),
            }
        }
        SequentialReadMbPerS => {
            fill(&mut host, GIBIBYTE);
            let of = |_: &mut Stream, call: u64| (READ, call * 32 % GIBIBYTE, 32);
            Loop::new(&mut host, depth).run((500, 8000), of).mb_per_s()
        }
        SequentialWriteMbPerS | WritePastCacheMbPerS => {
            let of = |_: &mut Stream, call: u64| (WRITE, call * 32, 32);
            Loop::new(&mut host, depth)
                .run((6000, 10_000), of)
                .mb_per_s()
        }
        SyncedWritesPerS => {
            let mut draws = Streams::new(SEED).stream("places");
            let count = 2000;
            for _ in 0..count {
                host.one(WRITE, draws.below(sectors), 1);
                if host.flash.keeps_writes() {
                    host.one(Operation::Flush, 0, 0);
                }
            }
            f64::from(count) / host.now.seconds()
        }
        MixedIops | MixedReadP99Us => {
            let of = |draws: &mut Stream, _| {
                let operation = if draws.chance(0.7) { READ } else { WRITE };
                (operation, anywhere(draws), 1)
            };
            let stretch = Loop::new(&mut host, depth)
                .run((900_000 + 4 * cache_units(&specification), 400_000), of);
            let at = stretch.read_us.len() * 99 / 100;
            if what == MixedIops {
                stretch.iops()
            } else {
                stretch.read_us[at]
            }
        }
    }
}

#[test]
fn drives_do_what_is_expected_of_them() {
    println!("seed {SEED}");
    let all = expectations();
    assert!(all.len() >= 5, "{} drives", all.len());
    let mut missed = Vec::new();
    for of in &all {
        for expected in &of.value {
            if expected.open {
                println!("SKIPPED {} {:?}: not met yet", of.drive, expected.what);
                continue;
            }
            let mut settings = vec![("past", past(expected.what))];
            if expected.what == WritePastCacheMbPerS {
                // As when it is full: what it holds is not what is measured.
                settings.extend([("slc_fixed_bytes", "0"), ("slc_dynamic_bytes", "0")]);
            }
            let more = expected.settings.iter();
            settings.extend(more.map(|(key, value)| (key.as_str(), value.as_str())));
            let specification = set(&of.drive, &settings).unwrap_or_else(|error| panic!("{error}"));
            let found = found(&specification, (expected.what, expected.depth));
            let by = found / expected.expected - 1.0;
            let line = format!(
                "{} {:?} at {}: {found:.1} for {:.1}, {:+.1} %: {}",
                of.drive,
                expected.what,
                expected.depth,
                expected.expected,
                by * 100.0,
                expected.source
            );
            println!("{line}");
            if by.abs() > expected.tolerance_share {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
