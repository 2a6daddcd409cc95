use super::*;
use diskperf_timeline::Deadline;
use diskperf_timeline::Span;
use diskperf_timeline::trace::{ArmWork, DiskPosition, Position, RequestPurpose, TracedProcess};

const REVOLUTION: u64 = 16_000_000;

fn request(issued: u64, spans: &[(Stage, u64)]) -> TracedRequest {
    TracedRequest {
        drive_index: 0,
        sector: 64,
        sector_count: 16,
        is_fua: false,
        purpose: RequestPurpose::Read,
        media_position: Some(Position::Disk(DiskPosition {
            cylinder: 0,
            head: 2,
            slot: 0,
            slots: 32,
        })),
        issued_at: Nanoseconds(issued),
        spans: spans
            .iter()
            .map(|(stage, until)| Span {
                stage: *stage,
                stage_end: Nanoseconds(*until),
            })
            .collect(),
        buffer_uses: Vec::new(),
    }
}

/// A drive that is asked for its first half track, and again 1 ms after that
/// has passed.
fn trace() -> Trace {
    let late = 2 * REVOLUTION + 1_000_000;
    let missed = Stage::MissedRevolution(Deadline::Search);
    Trace {
        drives: vec![TracedDrive {
            revolution_ns: REVOLUTION as f64,
            rotational_phase: 0.0,
            sector_bytes: 512,
            has_bus_link: false,
        }],
        requests: vec![
            request(
                REVOLUTION / 2,
                &[
                    (Stage::RotationalLatency, REVOLUTION),
                    (Stage::MediaTransfer, REVOLUTION + REVOLUTION / 2),
                ],
            ),
            request(
                late - 1000,
                &[
                    (Stage::Command, late),
                    (missed, 3 * REVOLUTION),
                    (Stage::MediaTransfer, 3 * REVOLUTION + REVOLUTION / 2),
                ],
            ),
        ],
        processes: vec![TracedProcess {
            process_number: 1,
            account_start: Nanoseconds(1000),
            processor_work: Vec::new(),
            spans: vec![
                Span {
                    stage: Stage::User,
                    stage_end: Nanoseconds(REVOLUTION / 2),
                },
                Span {
                    stage: Stage::MediaTransfer,
                    stage_end: Nanoseconds(late),
                },
                Span {
                    stage: missed,
                    stage_end: Nanoseconds(3 * REVOLUTION),
                },
                Span {
                    stage: Stage::MediaTransfer,
                    stage_end: Nanoseconds(4 * REVOLUTION),
                },
            ],
        }],
        handler_work: Vec::new(),
        ..Trace::default()
    }
}

#[test]
fn the_deadline_is_where_the_place_passed() {
    let picture = PlatterPicture::from_trace(&trace()).unwrap();
    let missed = picture.missed_revolution.unwrap();
    assert_eq!(missed.deadline, Nanoseconds(2 * REVOLUTION));
    assert_eq!(missed.ready_at, Nanoseconds(2 * REVOLUTION + 1_000_000));
    assert_eq!(
        (missed.missed_request_count, missed.total_request_count),
        (1, 2)
    );
    assert_eq!(picture.first_revolution, 0.0);
    let html = render_figure(&picture, "picture", "a test");
    assert!(html.contains("1.00 ms or 2.0 sectors later"), "{html}");
    assert!(
        html.contains("missed revolution: search too late, by 1.00 ms"),
        "{html}"
    );
}

#[test]
fn every_piece_of_a_span_has_a_mark_in_its_own_line() {
    let picture = PlatterPicture::from_trace(&trace()).unwrap();
    let html = render_figure(&picture, "picture", "a test");
    let marks = html.split("class=\"rows_marks\"").nth(1).unwrap();
    let marks = marks.split("</g>").next().unwrap();
    // Half a revolution of work; latency, transfer; command, the missed
    // revolution, transfer: none is cut by the end of a revolution.
    assert_eq!(marks.matches("<rect").count(), 6, "{marks}");
    assert!(html.contains("data-rows=\"6\""));
    assert_eq!(marks.matches("class=\"missed\"").count(), 1);
}

#[test]
fn without_requests_there_is_no_picture() {
    let mut idle = trace();
    idle.requests.clear();
    assert_eq!(PlatterPicture::from_trace(&idle), None);
    assert_eq!(PlatterPicture::from_trace(&Trace::default()), None);
}

/// A disk that writes from its buffer and cleans a band while reads are answered: the arm's
/// ways are drawn with its own sectors, and what waits for it is not.
#[test]
fn background_arm_work_is_drawn() {
    let mut of = trace();
    of.drives[0].has_bus_link = true;
    let mut hit = request(REVOLUTION / 2, &[(Stage::CacheHit, REVOLUTION)]);
    hit.sector = 4711;
    let waits = request(REVOLUTION / 2, &[(Stage::Destage, 2 * REVOLUTION)]);
    of.requests = vec![hit, waits];
    of.processes[0].spans.truncate(1);
    of.processes[0].spans[0].stage_end = Nanoseconds(3 * REVOLUTION);
    let arm = |work, from: u64| TracedArm {
        drive_index: 0,
        arm_work: work,
        sector: 815,
        sector_count: 8,
        arm_position: DiskPosition::default(),
        work_start: Nanoseconds(from),
        spans: [Stage::Seek, Stage::RotationalLatency, Stage::MediaTransfer]
            .into_iter()
            .zip(1..)
            .map(|(stage, third)| Span {
                stage,
                stage_end: Nanoseconds(from + third * REVOLUTION / 3),
            })
            .collect(),
    };
    of.arm_traces = vec![
        arm(ArmWork::Destage, 0),
        arm(ArmWork::Cleaning, REVOLUTION),
        arm(ArmWork::ReadAhead, 2 * REVOLUTION),
    ];
    let html = render_figure(
        &PlatterPicture::from_trace(&of).unwrap(),
        "picture",
        "a test",
    );
    let drawn = |class: &str| html.matches(&format!("<rect class=\"{class}\"")).count();
    assert_eq!((drawn("arm"), drawn("rotation")), (3, 3));
    for class in ["hit", "destage", "cleaning", "read-ahead"] {
        assert_eq!(drawn(class), 1, "{class}: {html}");
        assert!(html.contains(&format!("var(--{class})")), "{class}");
    }
    assert_eq!((drawn("controller"), drawn("media")), (0, 0));
    assert!(
        html.contains("destage of 8 sectors from 815 (cylinder 0"),
        "{html}"
    );
    assert!(html.contains("read of 16 sectors from 4711"), "{html}");
    let keys = [
        "served from the drive's buffer",
        "cleaning of bands",
        "reading ahead",
    ];
    assert!(keys.iter().all(|words| html.contains(words)), "{html}");
}
