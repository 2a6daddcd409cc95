//! What is recorded of scripted events.

use super::*;
use diskperf_blocktrace::own::TracePart;
use diskperf_blocktrace::{ReadOptions, TraceReader};

/// Shown nothing.
struct Told(Vec<String>);

impl Observer for Told {
    fn handle_event(&mut self, event: ObserverEvent<'_>) {
        match event {
            ObserverEvent::RequestsRecorded(_) => panic!("what is recorded is no news"),
            ObserverEvent::Warning(warning) => self.0.push(warning.to_owned()),
            _ => {}
        }
    }
}

fn issued(at: u64, number: u64, offset_bytes: u64) -> DeviceEvent {
    DeviceEvent {
        event_time: Nanoseconds(at),
        event_step: DeviceStep::Issued(DeviceRequest {
            request_number: number,
            device_index: 0,
            operation: DeviceOperation::Write { fua: true },
            is_awaited: false,
            offset_bytes,
            length_bytes: 4096,
        }),
    }
}

fn completed(at: u64, number: u64) -> DeviceEvent {
    DeviceEvent {
        event_time: Nanoseconds(at),
        event_step: DeviceStep::Completed { number, errno: 0 },
    }
}

fn lost(at: u64, events: u64) -> DeviceEvent {
    DeviceEvent {
        event_time: Nanoseconds(at),
        event_step: DeviceStep::EventsLost(events),
    }
}

fn source(name: &str) -> EventSource {
    EventSource {
        devices: vec![name.to_owned()],
        description: "scripted".to_owned(),
    }
}

/// A repetition: what comes before it, in it and after it.
fn repeat(
    recording: &mut RecordingObserver<'_>,
    (number, discarded): (u32, bool),
    (begins, ends): (u64, u64),
    [before, inside, after]: [&[DeviceEvent]; 3],
) {
    let mut say = |event| recording.handle_event(ObserverEvent::RequestsRecorded(event));
    say(RecordedEvent::RequestEvents(before));
    recording.handle_event(ObserverEvent::RepetitionStarted {
        number,
        of: 2,
        total_bytes: 0,
        lasts: None,
        workers: &[],
    });
    let mut say = |event| recording.handle_event(ObserverEvent::RequestsRecorded(event));
    say(RecordedEvent::RecordingStarted(Nanoseconds(begins)));
    say(RecordedEvent::RequestEvents(inside));
    say(RecordedEvent::RecordingEnded(Nanoseconds(ends)));
    say(RecordedEvent::RequestEvents(after));
    let made = Repetition {
        is_discarded: discarded,
        ..Repetition::default()
    };
    recording.handle_event(ObserverEvent::RepetitionFinished(&[made]));
}

struct Found {
    records: Vec<TraceRecord>,
    parts: Vec<TracePart>,
    devices: Vec<String>,
}

fn read(path: &Path) -> Found {
    let file = std::fs::File::open(path).expect("a trace");
    let mut reader =
        TraceReader::open("trace", Box::new(file), &ReadOptions::default()).expect("one");
    let records = reader.by_ref().map(|one| one.expect("a request")).collect();
    Found {
        records,
        parts: reader.parts(),
        devices: reader.devices().to_vec(),
    }
}

fn at(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("trace")
}

#[test]
fn repetitions_are_parts_and_what_is_between_them_is_in_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = at(&folder);
    let mut told = Told(Vec::new());
    let mut recording =
        RecordingObserver::new(RecordingDestination::open(&path, false).ok(), &mut told);
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::SourceOpened(Ok(&source("sda"))),
    ));
    recording.handle_event(ObserverEvent::StepStarted {
        title: "write",
        number: 0,
        of: 1,
    });
    assert!(!path.exists(), "nothing is recorded yet");
    // A pilot is nobody's.
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::RecordingStarted(Nanoseconds(5)),
    ));
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::RequestEvents(&[issued(6, 0, 0)]),
    ));
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::RecordingEnded(Nanoseconds(7)),
    ));
    assert!(!path.exists(), "nothing is recorded yet");
    repeat(
        &mut recording,
        (0, true),
        (100, 200),
        [
            &[issued(50, 1, 0)],
            &[completed(110, 1), issued(120, 2, 4096), lost(130, 3)],
            &[issued(210, 3, 8192)],
        ],
    );
    repeat(
        &mut recording,
        (1, false),
        (400, 500),
        [
            // One of the first part.
            &[completed(300, 2), completed(310, 3)],
            &[issued(420, 4, 0), issued(430, 5, 0), completed(450, 4)],
            &[lost(510, 1)],
        ],
    );
    let came = recording.finish_recording().expect("a trace").expect("one");
    assert_eq!(
        (came.request_count, came.part_count, came.lost_event_count),
        (3, 2, 3)
    );
    assert!(told.0.is_empty());
    let found = read(&path);
    let times: Vec<_> = found
        .records
        .iter()
        .map(|one| (one.issued_ns, one.completed_ns, one.offset_bytes))
        .collect();
    let expected = [(0, Some(180), 4096), (300, Some(330), 0), (310, None, 0)];
    assert_eq!(times, expected);
    assert!(found.records.iter().all(|one| one.fua && !one.sync));
    let parts: Vec<_> = found
        .parts
        .iter()
        .map(|part| {
            (
                part.name.as_str(),
                part.request_count,
                part.is_counted,
                part.end_ns,
            )
        })
        .collect();
    let expected = [
        ("write, repetition 1", 1, false, Some(80)),
        ("write, repetition 2", 2, true, Some(380)),
    ];
    assert_eq!(parts, expected);
}

/// A second machine begins at time zero, and counts its requests anew.
#[test]
fn another_machine_is_put_behind_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = at(&folder);
    let mut told = Told(Vec::new());
    let mut recording =
        RecordingObserver::new(RecordingDestination::open(&path, false).ok(), &mut told);
    for name in ["drive1", "drive1", "other"] {
        recording.handle_event(ObserverEvent::RequestsRecorded(
            RecordedEvent::SourceOpened(Ok(&source(name))),
        ));
        recording.handle_event(ObserverEvent::StepStarted {
            title: name,
            number: 0,
            of: 1,
        });
        let inside = [issued(1000, 7, 0)];
        repeat(
            &mut recording,
            (0, false),
            (1000, 1500),
            [&[completed(10, 7)], &inside, &[]],
        );
    }
    recording.finish_recording().expect("a trace");
    let found = read(&path);
    let times: Vec<_> = found.records.iter().map(|one| one.issued_ns).collect();
    assert_eq!(times, [0, 500, 1000]);
    assert!(found.records.iter().all(|one| one.completed_ns.is_none()));
    assert_eq!(found.devices, ["drive1", "other"]);
    assert_eq!(found.parts.len(), 3);
}

#[test]
fn a_file_that_is_there_stays_unless_it_is_to_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = at(&folder);
    std::fs::write(&path, "mine").expect("a file");
    let refused = RecordingDestination::open(&path, false)
        .err()
        .map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("--force")));
    // One that comes in between stays too, and the run goes on.
    let other = folder.path().join("other");
    let place = RecordingDestination::open(&other, false).expect("nothing is there");
    std::fs::write(&other, "mine").expect("a file");
    let mut told = Told(Vec::new());
    let mut recording = RecordingObserver::new(Some(place), &mut told);
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::SourceOpened(Ok(&source("sda"))),
    ));
    for number in 0..2 {
        let inside = [issued(1, 0, 0)];
        repeat(&mut recording, (number, false), (0, 9), [&[], &inside, &[]]);
    }
    let came = recording
        .finish_recording()
        .expect("it ended before")
        .expect("one");
    assert!(came.failure.is_some());
    assert_eq!(told.0.len(), 1, "{:?}", told.0);
    assert_eq!(std::fs::read_to_string(&other).expect("a file"), "mine");
    // What was asked for replaces the file at once.
    let place = RecordingDestination::open(&path, true).expect("it may go");
    let mut told = Told(Vec::new());
    let mut recording = RecordingObserver::new(Some(place), &mut told);
    recording.handle_event(ObserverEvent::RequestsRecorded(
        RecordedEvent::SourceOpened(Ok(&source("sda"))),
    ));
    repeat(
        &mut recording,
        (0, false),
        (0, 9),
        [&[], &[issued(1, 0, 0)], &[]],
    );
    recording.finish_recording().expect("a trace");
    assert_eq!(read(&path).records.len(), 1);
}
