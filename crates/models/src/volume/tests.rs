//! Figures of job files beside the simulation of each request, and what the search finds.

use super::load::PartArrivals;
use super::search::VolumeSearch;
use super::week::carry;
use super::*;
use diskperf_analysis::volume::{VolumeFigures, VolumeVerdict};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::specification::{BuildDevice, Unit};
use diskperf_device::volume::VolumeSpecification;
use diskperf_device::{Device, Drive, Operation};
use diskperf_fio::{JobEnvironment, JobFile};
use diskperf_sim::{RandomStreams, Time};
use std::sync::atomic::AtomicBool;

const SECOND: u64 = 1_000_000_000;
/// Credits of gp2 of which 5400 requests are left.
const FEW: &[(&str, &str)] = &[("credits_at_start_share", "0.001")];

/// Runtime in seconds, rate in requests per second, and size in KiB.
type Part = (u64, u64, u64);
type Settings = &'static [(&'static str, &'static str)];

/// Job file of parts, each with a runtime in seconds, a rate and a size in KiB.
fn job_file(parts: &[Part]) -> String {
    let mut text = "[global]\ndirect=1\nrw=randread\nsize=1g\ntime_based\n".to_owned();
    for (number, (seconds, rate, kib)) in parts.iter().enumerate() {
        text += &format!(
            "[part{number}]\nstonewall\nruntime={seconds}s\nrate_iops={rate}\nbs={kib}k\n"
        );
    }
    text
}

fn load(text: &str, volume: &VolumeSpecification) -> Result<VolumeLoad, String> {
    let file = JobFile::parse("job.fio", text, &JobEnvironment::default());
    let file = file.map_err(|errors| errors.to_string())?;
    read_job_file(&file, "job.fio", &[volume.charge_rules]).map_err(|error| error.to_string())
}

fn volume(name: &str, settings: &[(&str, &str)]) -> VolumeSpecification {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let catalogue = Catalogue::embedded();
    let types = list_volume_types(&catalogue, &[name.to_owned()], &settings);
    types.expect("a volume")[0]
        .specify(&[])
        .expect("its settings")
}

/// Response times of evenly spaced requests, sorted, in nanoseconds.
fn simulate(volume: &VolumeSpecification, parts: &[Part]) -> Vec<u64> {
    let mut volume = volume.clone();
    volume.queue_depth = u32::MAX;
    let device = volume.build(&RandomStreams::new(7), Unit::default());
    let mut drive = Drive::new(Device::Volume(Box::new(device)));
    let (mut responses, mut start, mut sector) = (Vec::new(), 0, 0);
    let mut reap = |drive: &mut Drive| {
        responses.extend(drive.completions().map(|one| one.latency().0));
    };
    for (seconds, rate, kib) in parts {
        for number in 1..=seconds * rate {
            drive.run_until(Time(start + number * SECOND / rate));
            reap(&mut drive);
            let sectors = kib * 1024 / u64::from(volume.sector_bytes);
            sector = (sector + 7919 * sectors) % (volume.sectors - sectors);
            drive
                .submit(Operation::Read, sector, sectors as u32)
                .expect("room in the queue");
        }
        start += seconds * SECOND;
    }
    drive.run_until(Time(start));
    reap(&mut drive);
    responses.sort_unstable();
    responses
}

#[test]
fn percentiles_and_verdicts_equal_those_of_each_request_simulated() {
    let rows: &[(&str, Settings, &[Part], VolumeVerdict)] = &[
        (
            "gp2",
            FEW,
            &[(60, 350, 16), (60, 100, 16)],
            VolumeVerdict::Carries,
        ),
        (
            "gp2",
            FEW,
            &[(60, 500, 16), (60, 100, 16)],
            VolumeVerdict::FallsBehind,
        ),
        (
            "gp2",
            FEW,
            &[(60, 500, 16), (30, 280, 16)],
            VolumeVerdict::Fails,
        ),
        (
            "gp2",
            FEW,
            &[(40, 600, 16), (80, 100, 1024)],
            VolumeVerdict::Fails,
        ),
        (
            "gp3",
            &[],
            &[(20, 2900, 16), (20, 100, 256)],
            VolumeVerdict::Carries,
        ),
        (
            "gp3",
            &[],
            &[(20, 3300, 16), (40, 100, 16)],
            VolumeVerdict::FallsBehind,
        ),
        (
            "pd-standard",
            &[],
            &[(60, 300, 4), (90, 10, 4)],
            VolumeVerdict::FallsBehind,
        ),
        (
            "premium-ssd",
            FEW,
            &[(60, 900, 4), (60, 100, 4)],
            VolumeVerdict::FallsBehind,
        ),
    ];
    for (name, settings, parts, verdict) in rows {
        let volume = volume(name, settings);
        let load = load(&job_file(parts), &volume).expect("a load");
        let total_ns = parts.iter().map(|part| part.0).sum::<u64>() * SECOND;
        let found = carry(&volume, &load, total_ns);
        let title = format!("{name} {settings:?} {parts:?}");
        assert_eq!(found.verdict, *verdict, "{title}");
        let simulated = simulate(&volume, parts);
        for (share, calculated_ms) in [(0.5, found.p50_ms), (0.99, found.p99_ms)] {
            let simulated_ms = simulated[(simulated.len() as f64 * share) as usize] as f64 / 1e6;
            assert!(
                (calculated_ms / simulated_ms - 1.0).abs() < 0.05,
                "{title}: {calculated_ms} calculated, {simulated_ms} simulated at {share}"
            );
        }
    }
}

/// Load of reads of 4 KiB, issued at these times in nanoseconds, that repeats until `total_ns`.
fn trace(
    times: impl IntoIterator<Item = u64>,
    volume: &VolumeSpecification,
    total_ns: u64,
) -> Result<VolumeLoad, String> {
    let mut builder = TraceLoadBuilder::new("web.csv", &[volume.charge_rules], total_ns);
    for (number, issued_ns) in times.into_iter().enumerate() {
        builder.advance(issued_ns);
        builder.add_request(LoadedRequest {
            start_byte: number as u64 % 1000 * (1 << 20),
            bytes: 4096,
            is_write: false,
        })?;
    }
    builder.finish()
}

fn evenly(count: u64, duration_ns: u64) -> impl Iterator<Item = u64> {
    (0..=count).map(move |number| number * duration_ns / count)
}

#[test]
fn a_trace_repeats_when_its_last_request_is_issued() {
    const WEEK: u64 = 7 * 86_400 * SECOND;
    let gp3 = volume("gp3", &[]);
    let ms = SECOND / 1000;
    for (duration_ns, parts) in [
        (500 * ms, 1),
        (61 * SECOND, 61),
        (61 * SECOND + 1, 61),
        (61 * SECOND + 600 * ms, 62),
    ] {
        let load = trace(evenly(6100, duration_ns), &gp3, WEEK).expect("a load");
        assert_eq!((load.duration_ns(), load.parts.len()), (duration_ns, parts));
        let figures = load.describe(WEEK);
        let mean = 6101.0 * 1e9 / duration_ns as f64;
        assert!((figures.iops_mean.expect("a rate") / mean - 1.0).abs() < 1e-6);
        assert!(
            figures.iops_max.expect("a rate") < 1.02 * mean,
            "{figures:?}"
        );
    }
    // 10,000 requests/s are not 1000 on average of 5 s.
    let half = trace(evenly(5000, 500 * ms), &gp3, WEEK).expect("a load");
    assert_eq!(carry(&gp3, &half, WEEK).verdict, VolumeVerdict::Fails);
    let slow = trace(evenly(1400, 500 * ms), &gp3, WEEK).expect("a load");
    assert_eq!(carry(&gp3, &slow, WEEK).verdict, VolumeVerdict::Carries);
    let error = trace([0, 0], &gp3, WEEK).expect_err("no time");
    assert!(error.contains("at the same time"), "{error}");
}

/// A burst of 1 s, of 20,000 requests, waits for several seconds behind the pacer.
#[test]
fn a_burst_of_a_second_is_not_averaged_in_a_week() {
    const WEEK: u64 = 7 * 86_400 * SECOND;
    let gp3 = volume("gp3", &[]);
    let burst = evenly(20_000, SECOND - 1).chain((1..=20).map(|second| second * SECOND));
    let load = trace(burst, &gp3, WEEK).expect("a load");
    let found = carry(&gp3, &load, 21 * SECOND);
    assert_eq!(found.verdict, VolumeVerdict::FallsBehind);
    assert!((4.0..6.0).contains(&found.wait_max_s), "{found:?}");
}

#[test]
fn a_gap_is_one_part_and_what_is_behind_the_duration_only_has_a_size() {
    let gp3 = volume("gp3", &[]);
    let ages = 1_700_000_000 * SECOND;
    let times = || [0, SECOND / 2, ages, ages + SECOND, u64::MAX];
    let day = 86_400 * SECOND;
    let load = trace(times(), &gp3, day).expect("a load");
    assert_eq!((load.duration_ns(), load.size_gib_min()), (day, 1));
    let rates: Vec<_> = load.parts.iter().map(|part| part.arrivals).collect();
    let two = PartArrivals::Open(2 * diskperf_device::volume::fluid::NANOREQUESTS);
    assert_eq!(rates[0], two);
    assert!(rates.len() <= 3 && rates[1..].iter().all(|rate| *rate == PartArrivals::Open(0)));
    let hour = 3600 * SECOND;
    let load = trace([0, hour + 1, hour + 2], &gp3, day).expect("a load");
    assert_eq!(load.parts.len(), 3);
    assert_eq!(
        (load.duration_ns(), load.parts[2].arrivals),
        (hour + 2, two)
    );
}

#[test]
fn a_verdict_does_not_depend_on_where_the_cycle_is_cut() {
    let gp2 = volume("gp2", &[]);
    let day = [(8 * 3600, 500, 16), (16 * 3600, 100, 16)];
    let long_day = [(16 * 3600, 500, 16), (8 * 3600, 100, 16)];
    let light = [(8 * 3600, 450, 16), (16 * 3600, 100, 16)];
    let halves = [(60, 299, 16), (60, 301, 16)];
    for (parts, verdict) in [
        (day, VolumeVerdict::FallsBehind),
        (long_day, VolumeVerdict::Fails),
        (light, VolumeVerdict::Carries),
        (halves, VolumeVerdict::Carries),
    ] {
        for parts in [parts, [parts[1], parts[0]]] {
            let load = load(&job_file(&parts), &gp2).expect("a load");
            for weeks in [1, 2] {
                let found = carry(&gp2, &load, weeks * 7 * 86_400 * SECOND);
                assert_eq!(found.verdict, verdict, "{parts:?}, {weeks} weeks");
            }
        }
    }
}

/// In a single repetition, a backlog at its end that waits for less than a second is carried.
#[test]
fn a_short_wait_at_the_end_of_a_repetition_is_carried() {
    let gp3 = volume("gp3", &[("pace_slack_ms", "0")]);
    for (rate, verdict) in [(3200, VolumeVerdict::Carries), (4000, VolumeVerdict::Fails)] {
        let load = load(&job_file(&[(10, 100, 16), (5, rate, 16)]), &gp3).expect("a load");
        let found = carry(&gp3, &load, 15 * SECOND);
        assert!(found.backlog_end > 1.0, "{found:?}");
        assert_eq!(found.verdict, verdict, "{rate}");
    }
}

#[test]
fn requests_in_flight_of_many_jobs_never_wrap_to_none() {
    let gp3 = volume("gp3", &[]);
    let text = "[deep]\nioengine=libaio\ndirect=1\nrw=randread\ntime_based\nruntime=60s\nsize=1m\niodepth=1048576\nnumjobs=4096\n";
    let load = load(text, &gp3).expect("a load");
    assert_eq!(load.parts[0].arrivals, PartArrivals::Closed(u32::MAX));
}

fn search(names: &[&str], text: &str, total_ns: u64) -> Result<Vec<VolumeFigures>, String> {
    let catalogue = Catalogue::embedded();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let types = list_volume_types(&catalogue, &names, &[]).map_err(|error| error.to_string())?;
    let rules: Vec<_> = types
        .iter()
        .map(|one| one.charge_rules().expect("rules"))
        .collect();
    let file = JobFile::parse("job.fio", text, &JobEnvironment::default()).expect("a job file");
    let load = read_job_file(&file, "job.fio", &rules).map_err(|error| error.to_string())?;
    let search = VolumeSearch {
        types: &types,
        load: &load,
        total_ns,
        size_gib_min: 1,
        stop: &AtomicBool::new(false),
    };
    let report = report_volumes(&search).map_err(|error| error.to_string())?;
    Ok(report.volumes)
}

/// The smallest gp2 for a steady 1200 requests/s is that of 400 GiB, whose base rate it is.
#[test]
fn the_smallest_size_is_that_whose_rates_suffice() {
    const MONTH: u64 = 30 * 86_400 * SECOND;
    let steady = job_file(&[(3600, 1200, 16)]);
    let found =
        search(&["gp2", "gp3", "premium-ssd", "st1:1TiB"], &steady, MONTH).expect("volumes");
    let row = |name: &str| found.iter().find(|one| one.volume == name).expect("a row");
    assert_eq!(row("gp2").size_gib, 400);
    assert!(
        row("premium-ssd")
            .settings
            .contains(&"drive.tier=P20".to_owned())
    );
    assert_eq!(row("st1").verdict, VolumeVerdict::Fails);
    let faster = job_file(&[(3600, 5200, 32)]);
    let found = search(&["gp3"], &faster, MONTH).expect("volumes");
    // A few requests are adjacent to one before, and are charged with it.
    let iops = found[0].settings[0].strip_prefix("drive.iops=");
    let iops: u32 = iops.expect("a rate").parse().expect("a number");
    assert!((5190..=5200).contains(&iops), "{iops}");
    // 5200 x 32 KiB are 170.4 MB/s.
    assert_eq!(found[0].settings[1], "drive.bytes_per_s=171000000");
    assert_eq!(found[0].size_gib, 11);
}

#[test]
fn jobs_without_a_constant_rate_are_refused_by_the_option() {
    let volume = volume("gp3", &[]);
    let base = job_file(&[(60, 100, 4)]);
    for (text, says) in [
        (base.replace("time_based\n", ""), "no end in time"),
        (base.replace("runtime=60s\n", ""), "no end in time"),
        (
            base.clone() + "[free]\nstonewall\nruntime=5s\n",
            "jobs with a rate beside",
        ),
        (
            base.clone() + "[more]\nruntime=5s\nrate_iops=5\n",
            "different runtimes",
        ),
        (
            base.replace("bs=4k", "bs=4k\nthinktime=5"),
            "no constant rate",
        ),
        (
            base.replace("randread", "randrw").replace("=100", "=100,"),
            "one direction only",
        ),
    ] {
        let error = load(&text, &volume).expect_err(says);
        assert!(error.contains(says), "{text}: {error}");
    }
    let error = search(&["gp4"], &base, SECOND).expect_err("no such volume");
    assert!(
        error.contains("no volume `gp4`") && error.contains("pd-ssd"),
        "{error}"
    );
}

/// Repetitions that leave the volume as they found it are calculated once.
#[test]
fn a_cycle_that_repeats_has_the_figures_of_all_its_repetitions() {
    // 100 s, of which 10 s are above the base rate of 300 and use a fifth of the credits.
    let volume = volume("gp2", &[("size_gib", "100"), ("burst_requests", "50000")]);
    let cycle: &[Part] = &[(10, 1300, 16), (90, 100, 16)];
    let load = load(&job_file(cycle), &volume).expect("a load");
    let [few, many] = [400, 40_000].map(|cycles| carry(&volume, &load, cycles * 100 * SECOND));
    assert_eq!(many.verdict, VolumeVerdict::Carries);
    assert_eq!(many.phases, few.phases);
    // 50 cycles of two phases are listed; in the others, the end of the refill counts, too.
    let left_out = [&few, &many].map(|one| one.phases_left_out);
    assert_eq!(left_out, [3 * 350, 3 * 39_950]);
    for (one, other) in [
        (many.p99_ms, few.p99_ms),
        (many.credits_ended_share, few.credits_ended_share),
        (many.backlog_end, few.backlog_end),
    ] {
        assert!((one - other).abs() <= 1e-9 * other.abs(), "{one} {other}");
    }
    // In the middle of a repetition, the rest of it is calculated by itself.
    let half = carry(&volume, &load, 40_000 * 100 * SECOND + 5 * SECOND);
    assert_eq!(half.phases_left_out, many.phases_left_out + 1);
    assert_eq!(half.iops_end, 1300.0);
}
