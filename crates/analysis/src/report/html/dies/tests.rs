use super::*;
use crate::report::html::picture;
use diskperf_timeline::trace::{FlashLevelSample, RequestPurpose, TracedDrive, TracedProcess};
use diskperf_timeline::{DieBusy, Span};

fn us(us: u64) -> Nanoseconds {
    Nanoseconds(us * 1000)
}

fn die_activity(die: u32, by: DieBusy, (from, until): (u64, u64)) -> DieBusyPeriod {
    DieBusyPeriod {
        die_index: die,
        busy_with: by,
        is_suspended: false,
        busy_start: us(from),
        busy_end: us(until),
    }
}

/// A read of 4 KiB of a die: it waits until `waits`, behind something, and is read.
fn read((channel, die): (u32, u32), issued: u64, (by, waits): (DieBusy, u64)) -> TracedRequest {
    let span = |stage, until| Span {
        stage,
        stage_end: us(until),
    };
    TracedRequest {
        drive_index: 0,
        sector: 8,
        sector_count: 1,
        is_fua: false,
        purpose: RequestPurpose::Read,
        media_position: Some(Position::Flash { channel, die }),
        issued_at: us(issued),
        spans: vec![
            span(Stage::DieWait(by), waits),
            span(Stage::FlashRead, waits + 50),
        ],
        buffer_uses: Vec::new(),
    }
}

fn levels(at: u64, host_units: u64, programmed_units: u64) -> FlashLevelSample {
    FlashLevelSample {
        sample_time: us(at),
        buffer_units: 4,
        cache_free_units: None,
        free_superblocks: 20,
        host_units,
        programmed_units,
    }
}

/// Two channels of two dies for 10 ms; a read waits for an erase of 3 ms at the second die
/// of the second channel.
fn trace() -> Trace {
    Trace {
        drives: vec![TracedDrive {
            revolution_ns: 0.0,
            rotational_phase: 0.0,
            sector_bytes: 4096,
            has_bus_link: false,
        }],
        requests: vec![
            read((0, 0), 100, (DieBusy::Read, 150)),
            read((1, 1), 2000, (DieBusy::Erase, 5000)),
        ],
        processes: vec![TracedProcess {
            process_number: 1,
            account_start: us(0),
            spans: vec![Span {
                stage: Stage::User,
                stage_end: us(10_000),
            }],
            processor_work: Vec::new(),
        }],
        flash_traces: vec![TracedFlash {
            drive_index: 0,
            channel_count: 2,
            die_count: 4,
            unit_bytes: 4096,
            buffer_units: 16,
            recorded_periods: vec![
                die_activity(0, DieBusy::Read, (100, 200)),
                die_activity(3, DieBusy::Erase, (2000, 5000)),
                DieBusyPeriod {
                    is_suspended: true,
                    ..die_activity(3, DieBusy::Read, (5000, 5050))
                },
            ],
            level_samples: vec![levels(0, 100, 100), levels(4000, 110, 130)],
            ..TracedFlash::default()
        }],
        ..Trace::default()
    }
}

/// The same with so much going on that not every interval can be drawn.
fn busy() -> Trace {
    let mut trace = trace();
    let reads = (0..9_000).map(|number| die_activity(1, DieBusy::Read, (number, number + 1)));
    trace.flash_traces[0].recorded_periods.extend(reads);
    trace
}

#[test]
fn a_short_time_is_drawn_interval_by_interval() {
    let picture = DiePicture::from_trace(&trace()).unwrap();
    assert!(picture.close_up.is_none());
    let html = render_figures(&picture, "dies-1", "a test");
    assert!(html.contains("data-picture=\"dies-1\" data-rows=\"3\""));
    let marks = html.split("class=\"rows_marks\"").nth(1).unwrap();
    let marks = marks.split("</g>").next().unwrap();
    assert_eq!(marks.matches("<rect").count(), 3, "{marks}");
    for words in [
        "channel 1, die 1: erase, 3.00 ms",
        "read, 50.0 µs, while a program or an erase is suspended",
        "The slowest: read of 4 KiB (channel 1, die 1), 3.05 ms: 3.00 ms die busy: erase",
        "amplification at 3.33 ms: 3.00",
        "in the buffer at 5.00 ms: 16 KiB",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert!(!html.contains("pSLC"), "it has none");
}

#[test]
fn the_cause_of_a_wait_is_red_at_its_die() {
    let html = render_figures(
        &DiePicture::from_trace(&trace()).unwrap(),
        "dies-1",
        "a test",
    );
    // In the lines of both requests, and at their dies.
    assert_eq!(html.matches("<rect class=\"missed\"").count(), 4);
    let waits = "read of 4 KiB (channel 1, die 1): die busy: erase";
    assert_eq!(html.matches(waits).count(), 2, "{html}");
}

#[test]
fn a_long_time_is_drawn_twice() {
    let picture = DiePicture::from_trace(&busy()).unwrap();
    let close = picture.close_up.as_ref().unwrap();
    // Around the read that waited, all of which is in it.
    assert!(
        close.start <= us(2000) && close.end >= us(5050),
        "{close:?}"
    );
    assert!(matches!(
        picture.whole_run.dies,
        DieActivities::BusySlices(_)
    ));
    let html = render_figures(&picture, "dies-1", "a test");
    assert!(html.contains("data-picture=\"dies-1-closely\""));
    assert!(html.contains("channel 1, die 0: busy about 100 %, most with read"));
    assert!(html.contains("channel 1, die 1: busy about 100 %, most with erase"));
}

#[test]
fn stretches_are_joined_and_say_what_most_of_them_went_to() {
    let all = [
        die_activity(0, DieBusy::Program, (0, 800)),
        die_activity(0, DieBusy::Read, (800, 805)),
        die_activity(1, DieBusy::Read, (1595, 1600)),
    ];
    let found = stretches::slice_die_activities(all.iter(), (us(0), us(1600)), 2);
    let found: Vec<_> = found
        .iter()
        .map(|one| {
            (
                one.die,
                one.activity,
                one.busy_level,
                one.first_slice,
                one.last_slice,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, DieBusy::Program, 4, 0, 80),
            (0, DieBusy::Read, 2, 80, 81),
            (1, DieBusy::Read, 2, 159, 160),
        ]
    );
}

#[test]
fn omitted_die_activities_are_reported() {
    let mut trace = busy();
    trace.flash_traces[0].omitted_period_count = 7;
    trace.flash_traces[0].complete_since = us(3000);
    let picture = DiePicture::from_trace(&trace).unwrap();
    let html = render_figures(&picture, "dies-1", "a test");
    assert!(html.contains("not kept: 7 intervals before this moment were left out"));
    assert!(html.contains("Die activities before 3.00 ms are omitted"));
    assert!(
        picture.whole_run.slowest_requests.is_empty(),
        "it was issued before"
    );
}

#[test]
fn amplification_and_rates_are_of_their_intervals() {
    let picture = DiePicture::from_trace(&trace()).unwrap();
    let intervals = &picture.whole_run.flash_series.intervals;
    assert_eq!(intervals.len(), 12);
    let moved: f64 = (intervals.iter())
        .map(|one| one.read_bytes_per_s * one.end.since(one.start).seconds())
        .sum();
    assert!((moved - 8192.0).abs() < 1.0, "{moved}");
    assert_eq!(
        intervals[0].write_amplification, None,
        "nothing was written by then"
    );
    let all: Vec<f64> = intervals
        .iter()
        .filter_map(|one| one.write_amplification)
        .collect();
    assert_eq!(all, [3.0; 4]);
}

#[test]
fn documents_of_any_numbers_are_drawn() {
    let mut trace = busy();
    let flash = &mut trace.flash_traces[0];
    flash.channel_count = 0;
    flash.recorded_periods.push(DieBusyPeriod {
        busy_start: Nanoseconds(u64::MAX),
        ..die_activity(u32::MAX, DieBusy::Read, (0, 1))
    });
    flash.recorded_periods.push(DieBusyPeriod {
        busy_end: Nanoseconds(u64::MAX),
        ..die_activity(0, DieBusy::Read, (0, 1))
    });
    flash.level_samples.push(FlashLevelSample {
        buffer_units: u32::MAX,
        cache_free_units: Some(u64::MAX),
        ..levels(5000, u64::MAX, u64::MAX)
    });
    trace.requests[0].media_position = Some(Position::Flash {
        channel: u32::MAX,
        die: u32::MAX,
    });
    let html = render_figures(&DiePicture::from_trace(&trace).unwrap(), "dies-1", "a test");
    assert!(!html.contains("NaN") && !html.contains("inf"));
    trace.processes[0].spans[0].stage_end = Nanoseconds(u64::MAX);
    assert!(DiePicture::from_trace(&trace).is_some());
}

#[test]
fn without_flash_or_requests_there_is_no_picture() {
    let mut idle = trace();
    idle.requests.clear();
    assert_eq!(DiePicture::from_trace(&idle), None);
    let mut other = trace();
    other.flash_traces.clear();
    assert_eq!(DiePicture::from_trace(&other), None);
    assert_eq!(picture::Picture::from_trace(&other), None);
    let kind = picture::Picture::from_trace(&trace()).map(|picture| picture.kind_name());
    assert_eq!(kind, Some("dies"));
}
