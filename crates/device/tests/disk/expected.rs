//! The disks of the catalogue against what their data sheets and queueing theory lead one
//! to expect (facts, disk drives, 3.4, 4.1 and 7). Nothing in the catalogue was chosen to
//! meet a value here.

use diskperf_catalogue::{Catalogue, Figure, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::Operation;
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::disk::layout::SectorPosition;
use diskperf_device::disk::queue::QueuePolicy;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::expected::disk::{
    LOAD_SEED, build_drive as idle, measure_figure, measure_random_ms,
};
use diskperf_sim::{RandomStream, RandomStreams};

const WRITE: Operation = Operation::Write { fua: false };

fn specification(drive: &str) -> DiskSpecification {
    set(drive, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The drive with other values of these keys, as the command line gives them.
fn set(drive: &str, settings: &[(&str, &str)]) -> Result<DiskSpecification, String> {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(&format!("bare-{drive}"), &settings);
    let read = resolved.and_then(DeviceSpecification::from_rig);
    let read = read.map_err(|error| error.to_string())?;
    Ok(read.disk().expect("a disk").clone())
}

#[test]
fn drives_do_what_is_expected_of_them() {
    println!("seed {LOAD_SEED}");
    let catalogue = Catalogue::embedded();
    let (mut tried, mut missed) = (0, Vec::new());
    for drive in &catalogue.expected_drives() {
        let of = catalogue.data_sheet_expectations(drive);
        for expected in of.unwrap_or_else(|errors| panic!("{errors}")).figures {
            // Those of flash drives are tried with these.
            let Figure::Disk(figure) = expected.figure else {
                continue;
            };
            let found = measure_figure(&specification(drive), figure, expected.depth);
            let by = found / expected.expected_value - 1.0;
            let line = format!(
                "{drive} {:?} at {}: {found:.4} for {:.4}, {:+.1} %: {}",
                expected.figure,
                expected.depth,
                expected.expected_value,
                by * 100.0,
                expected.source
            );
            println!("{line}");
            tried += 1;
            if by.abs() > expected.tolerance_share {
                missed.push(line);
            }
        }
    }
    assert!(tried >= 36, "{tried} figures");
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A file that is laid over the catalogue says what else is expected, and one that is wrong
/// is named.
#[test]
fn expectations_may_be_of_ones_own() {
    let text = |drive: &str, what: &str| {
        format!(
            "drive = \"{drive}\"\n[[value]]\nwhat = \"{what}\"\nexpected = 9.0\ntolerance_share = 0.1\nsource = \"mine\"\n"
        )
    };
    let with = |text: &str| Catalogue::embedded().with_file("expected/sas-10k.toml", text);
    let own = with(&text("sas-10k", "random_read_ms")).data_sheet_expectations("sas-10k");
    let own = own.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((own.figures.len(), own.figures[0].depth), (1, 1));
    for (catalogue, drive, message) in [
        (
            with(&text("sata-7200", "random_read_ms")),
            "sas-10k",
            "is of the drive `sata-7200`",
        ),
        (
            with(&text("sas-10k", "random_reads")),
            "sas-10k",
            "random_reads",
        ),
        (
            Catalogue::embedded(),
            "eagle",
            "says nothing of what `eagle`",
        ),
        (Catalogue::embedded(), "sas-15k", "no drive `sas-15k`"),
    ] {
        let refused = catalogue
            .data_sheet_expectations(drive)
            .expect_err("nothing");
        assert!(
            refused.to_string().contains(message),
            "{message}: {refused}"
        );
    }
}

/// A(q): the mean over the arm's place of the time until the first of q fresh requests
/// begins to pass. A queue that keeps those it left behind is up to a tenth worse.
fn bound_ms(of: &DiskSpecification, depth: i32, draws: &mut RandomStream) -> f64 {
    let disk = Disk::new(of, RotationAngle::ZERO).expect("a disk");
    let mechanism = disk.mechanism();
    let layout = mechanism.layout();
    let mut place = || layout.position_of(draws.draw_below(layout.sectors()));
    let targets: Vec<SectorPosition> = (0..1500).map(|_| place()).collect();
    let period = mechanism.spindle().revolution_time().as_millis();
    let (arms, step) = (300, 0.04);
    let mut sum = 0.0;
    for _ in 0..arms {
        let arm = place();
        let seeks: Vec<f64> = targets
            .iter()
            .map(|target| {
                let seek = mechanism
                    .seek_curve()
                    .time_over(target.cylinder.abs_diff(arm.cylinder));
                match target.head == arm.head {
                    true => seek.as_millis(),
                    false => seek.as_millis().max(of.mechanism.head_switch_ms),
                }
            })
            .collect();
        let mut at = step / 2.0;
        loop {
            let passed = |seek: &f64| ((at - seek) / period).clamp(0.0, 1.0);
            let share: f64 = seeks.iter().map(passed).sum::<f64>() / seeks.len() as f64;
            let later = (1.0 - share).powi(depth);
            if later < 1e-6 {
                break;
            }
            sum += later * step;
            at += step;
        }
    }
    sum / f64::from(arms)
}

/// Random reads at each depth lie between the bound and a seventh above that of one command
/// less: when the arm is given the next one, the host does not know yet that the last is
/// done.
#[test]
fn depth_is_worth_what_theory_says() {
    println!("seed {LOAD_SEED}");
    for drive in ["sata-7200", "sata-consumer", "sas-10k"] {
        // Waiting is without limit in theory.
        let mut of = specification(drive);
        of.queue.age_limit_ms = None;
        let mut draws = RandomStreams::new(LOAD_SEED).named_stream("bound");
        for depth in [2, 4, 8, 16, 32] {
            let found = measure_random_ms(
                &mut idle(&of),
                (Operation::Read, LOAD_SEED),
                depth as u64,
                (500, 6000),
            );
            let mut bound = |depth| bound_ms(&of, depth, &mut draws);
            let (least, most) = (bound(depth), 1.14 * bound(depth - 1));
            println!("{drive} at {depth}: {found:.3} ms, from {least:.3} to {most:.3}");
            assert!(
                (least * 0.99..most).contains(&found),
                "{drive} at {depth}: {found}"
            );
        }
    }
}

/// Writes that the buffer takes are ordered among hundreds, whatever the host's depth.
#[test]
fn written_at_random_goes_faster_than_read() {
    println!("seed {LOAD_SEED}");
    for drive in ["sata-7200", "sata-consumer"] {
        let of = specification(drive);
        let extents = of.write_cache.as_ref().expect("on").extents_max;
        let mut draws = RandomStreams::new(LOAD_SEED).named_stream("bound");
        let written = measure_random_ms(&mut idle(&of), (WRITE, LOAD_SEED), 1, (5000, 5000));
        let read = measure_random_ms(
            &mut idle(&of),
            (Operation::Read, LOAD_SEED),
            32,
            (500, 3000),
        );
        let bound = bound_ms(&of, extents as i32, &mut draws);
        let settle = of.mechanism.write_settle_ms;
        println!("{drive}: written {written:.3} ms, read at 32 {read:.3}, bound {bound:.3}");
        assert!(written < read && written > bound);
        assert!(written < (bound + settle) * 1.25, "{written} of {bound}");
    }
}

#[test]
fn each_policy_has_its_own_number_and_no_other() {
    let of = |settings: &[(&str, &str)]| set("sas-10k", settings).map(|of| of.queue.order);
    let v_scan = ("queue_policy", "v_scan");
    let aged = ("queue_policy", "aged_sptf");
    let (share, weight) = (("v_scan_share", "0.2"), ("aged_sptf_ms_per_s", "6"));
    assert_eq!(of(&[v_scan, share]), Ok(QueuePolicy::VScan { share: 0.2 }));
    assert_eq!(
        of(&[aged, weight]),
        Ok(QueuePolicy::AgedSptf { ms_per_s: 6.0 })
    );
    // A policy by its name alone has the number that `calculate disk` takes.
    assert_eq!(of(&[v_scan]), Ok(QueuePolicy::VScan { share: 0.2 }));
    assert_eq!(of(&[aged]), Ok(QueuePolicy::AgedSptf { ms_per_s: 20.0 }));
    for (settings, message) in [
        (&[share][..], "only `queue_policy=\"v_scan\"` uses it"),
        (
            &[aged, weight, share],
            "only `queue_policy=\"v_scan\"` uses it",
        ),
        (
            &[v_scan, share, weight],
            "only `queue_policy=\"aged_sptf\"` uses it",
        ),
        (&[v_scan, ("v_scan_share", "1.1")], "v_scan_share"),
    ] {
        let refused = of(settings).expect_err("no policy");
        assert!(refused.contains(message), "{settings:?}: {refused}");
    }
}

/// Deep queues: SPTF, then SPTF that looks at the age, then the arm's way alone.
#[test]
fn policies_of_the_catalogue_are_in_the_order_of_theory() {
    println!("seed {LOAD_SEED}");
    let mean = |settings: &[(&str, &str)]| {
        let of = set("sas-10k", settings).unwrap_or_else(|error| panic!("{error}"));
        measure_random_ms(
            &mut idle(&of),
            (Operation::Read, LOAD_SEED),
            32,
            (500, 6000),
        )
    };
    let of = |name| mean(&[("queue_policy", name)]);
    let aged = mean(&[("queue_policy", "aged_sptf"), ("aged_sptf_ms_per_s", "20")]);
    let v_scan = mean(&[("queue_policy", "v_scan"), ("v_scan_share", "0.2")]);
    let (sptf, sstf, fcfs) = (of("sptf"), of("sstf"), of("fcfs"));
    println!("sptf {sptf:.3} aged {aged:.3} v_scan {v_scan:.3} sstf {sstf:.3} fcfs {fcfs:.3} ms");
    assert!(sptf < aged && aged < fcfs);
    assert!(sptf < v_scan && v_scan < 0.8 * fcfs);
    // Facts, 3.4: at depth 32 the two are within a hundredth of each other.
    assert!((v_scan / sstf - 1.0).abs() < 0.03, "{v_scan} {sstf}");
}
