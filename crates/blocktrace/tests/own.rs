//! diskperf's own form: what is recorded is read again, of a file that is cut off anywhere
//! all of its whole blocks are, and nothing that is damaged is taken for a trace.

use diskperf_blocktrace::own::TraceRecorder;
use diskperf_blocktrace::{
    DeviceIndex, Form, ReadError, ReadOptions, TraceReader, TraceRecord, TraceWriter,
    TracedOperation,
};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

fn open(bytes: &[u8], partial: bool) -> Result<TraceReader, ReadError> {
    let options = ReadOptions {
        is_partial_allowed: partial,
        ..ReadOptions::default()
    };
    TraceReader::open(
        "trace",
        Box::new(std::io::Cursor::new(bytes.to_vec())),
        &options,
    )
}

fn read(bytes: &[u8], partial: bool) -> Result<Vec<TraceRecord>, ReadError> {
    open(bytes, partial)?.collect()
}

fn refusal(bytes: &[u8]) -> String {
    read(bytes, false)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

/// A request of everything that the form carries.
fn request(number: u64) -> TraceRecord {
    TraceRecord {
        issued_ns: number * 1000,
        completed_ns: Some(number * 1000 + 70_000),
        think_ns: None,
        operation: TracedOperation::Write,
        fua: false,
        sync: true,
        device: DeviceIndex(0),
        offset_bytes: number * 4096,
        length_bytes: 4096,
        errno: 0,
    }
}

/// A trace of so many requests, a block of each few.
fn recorded(requests: u64, per_block: u64) -> Vec<u8> {
    let mut recorder = TraceRecorder::create(Vec::new()).expect("memory");
    recorder.add_device("sda").expect("memory");
    for number in 0..requests {
        let record = request(number);
        let id = recorder.record_issue(&record).expect("memory");
        let at_ns = record.completed_ns.expect("it completes");
        recorder.record_completion(id, at_ns, 0).expect("memory");
        if number % per_block == per_block - 1 {
            recorder.flush().expect("memory");
        }
    }
    recorder.finish().expect("memory")
}

fn records() -> impl Strategy<Value = Vec<TraceRecord>> {
    let operation = prop_oneof![
        Just(TracedOperation::Read),
        Just(TracedOperation::Write),
        Just(TracedOperation::Flush),
        Just(TracedOperation::Discard),
        Just(TracedOperation::WriteZeroes),
    ];
    let what = (operation, any::<bool>(), any::<bool>(), 0..3u32);
    let times = (
        0..10_000_000u64,
        proptest::option::of(0..u64::from(u32::MAX)),
        proptest::option::of(any::<u64>()),
    );
    // No storage has a byte beyond 2^63.
    let bytes = || 0..=1u64 << 62;
    let one = (what, times, bytes(), bytes(), any::<u16>());
    proptest::collection::vec(one, 1..200).prop_map(|all| {
        let mut issued_ns = 0;
        let first = all[0].1.0;
        let mut records = Vec::new();
        for ((operation, fua, sync, device), (gap, response, think_ns), offset, length, errno) in
            all
        {
            issued_ns += gap % (first + 1);
            records.push(TraceRecord {
                issued_ns,
                completed_ns: response.map(|response| issued_ns + response),
                think_ns,
                operation,
                fua,
                sync,
                device: DeviceIndex(device),
                offset_bytes: offset,
                length_bytes: length,
                errno: if response.is_some() { errno } else { 0 },
            });
        }
        let begins = records[0].issued_ns;
        for record in &mut records {
            record.issued_ns -= begins;
            record.completed_ns = record.completed_ns.map(|at| at - begins);
        }
        records
    })
}

/// Issues and completions in the order of their times, as they happen.
fn as_they_happen(records: &[TraceRecord]) -> Vec<u8> {
    let mut recorder = TraceRecorder::create(Vec::new()).expect("memory");
    for name in ["sda", "sdb", "a file, with a comma"] {
        recorder.add_device(name).expect("memory");
    }
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        events.push((record.issued_ns, false, number));
        events.extend(record.completed_ns.map(|at| (at, true, number)));
    }
    // An issue is before its own completion of the same moment.
    events.sort_by_key(|(at, is_end, number)| (*at, *is_end, *number));
    for (at, is_end, number) in events {
        match is_end {
            false => {
                let id = recorder.record_issue(&records[number]).expect("memory");
                assert_eq!(id, number as u64);
            }
            true => recorder
                .record_completion(number as u64, at, records[number].errno)
                .expect("memory"),
        }
    }
    recorder.finish().expect("memory")
}

proptest! {
    #[test]
    fn what_is_recorded_is_read_again(records in records()) {
        let bytes = as_they_happen(&records);
        let reader = open(&bytes, false).expect("a trace");
        prop_assert_eq!(reader.form(), Form::Diskperf);
        let again: Result<Vec<TraceRecord>, ReadError> = reader.collect();
        prop_assert_eq!(again.expect("a trace"), records);
    }

    #[test]
    fn a_conversion_to_it_loses_nothing(records in records()) {
        let mut writer = TraceWriter::create(Vec::new(), Form::Diskperf).expect("it is written");
        writer.name_devices(&["a".to_owned(), "b".to_owned(), "c".to_owned()]);
        for record in &records {
            writer.write(record).expect("memory");
        }
        prop_assert_eq!(writer.left_out_count(), 0);
        let bytes = writer.finish().expect("memory");
        // A device gets its number with its first request.
        let mut numbers: Vec<DeviceIndex> = Vec::new();
        let wanted = records.iter().map(|record| {
            let known = numbers.iter().position(|device| *device == record.device);
            let number = known.unwrap_or_else(|| {
                numbers.push(record.device);
                numbers.len() - 1
            });
            let device = DeviceIndex(number as u32);
            TraceRecord { device, ..*record }
        });
        let wanted: Vec<TraceRecord> = wanted.collect();
        prop_assert_eq!(read(&bytes, false).expect("a trace"), wanted);
    }

    #[test]
    fn any_byte_that_differs_is_found(place in any::<prop::sample::Index>(), bit in 0..8u8) {
        let whole = recorded(50, 7);
        let mut bytes = whole.clone();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        prop_assert!(read(&bytes, false).is_err(), "bit {bit} of byte {place}");
        // What is read of it all the same is what was recorded.
        if let Ok(some) = read(&bytes, true) {
            let all = read(&whole, false).expect("a trace");
            prop_assert_eq!(&some[..], &all[..some.len()]);
        }
    }
}

#[test]
fn a_trace_that_is_cut_off_anywhere_has_its_whole_blocks() {
    let whole = recorded(40, 4);
    let all = read(&whole, false).expect("a trace");
    assert_eq!(all.len(), 40);
    let block_bytes = 24 + 4 * (40 + 24);
    // The first block names the device as well.
    let first_bytes = 16 + 8 + 3 + block_bytes;
    for length in 16..whole.len() {
        let cut = &whole[..length];
        let some = read(cut, true).unwrap_or_else(|error| panic!("{length}: {error}"));
        let blocks = match length >= first_bytes {
            true => 1 + (length - first_bytes) / block_bytes,
            false => 0,
        };
        assert_eq!(some.len(), (4 * blocks).min(40), "{length} bytes");
        assert_eq!(some, all[..some.len()]);
        assert!(
            refusal(cut).contains("--partial"),
            "{length}: {}",
            refusal(cut)
        );
    }
}

#[test]
fn what_no_recorder_writes_is_refused_at_its_place() {
    let whole = recorded(8, 4);
    let mut version = whole.clone();
    version[8] = 2;
    let mut version_2 = version.clone();
    let sum = crc32fast::hash(&version_2[..12]);
    version_2[12..16].copy_from_slice(&sum.to_le_bytes());
    let behind = [&whole[..], &whole[..]].concat();
    let cases: [(&[u8], &str); 6] = [
        (&whole[..10], "within its header"),
        (&version, "checksum"),
        (&version_2, "version 2"),
        (&behind, "follows the last block"),
        (&whole[..whole.len() - 24], "the trace has no end"),
        (
            &whole[..whole.len() - 30],
            "block 2 (byte 307): the trace ends within this block",
        ),
    ];
    for (bytes, says) in cases {
        let said = refusal(bytes);
        assert!(said.contains(says), "{says}: {said}");
    }
}

/// A block with any payload, whose checksum is right.
fn block(payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    block.extend(b"DBLK");
    block.extend((payload.len() as u32).to_le_bytes());
    block.extend([0; 12]);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&block);
    sum.update(payload);
    block.extend(sum.finalize().to_le_bytes());
    block.extend(payload);
    block
}

#[test]
fn items_that_nobody_writes_are_refused_where_the_checksum_is_right() {
    let header = recorded(1, 1)[..16].to_vec();
    let issue = [&[2u8, 0, 0, 0][..], &[0; 36]].concat();
    let completion = [&[3u8, 0, 0, 0, 0, 0, 0, 0][..], &[0; 16]].concat();
    let named = [1u8, 0, 1, 0, 0, 0, 0, 0, b'x'];
    let cases: [(Vec<u8>, &str); 7] = [
        (vec![9], "item kind 9 is unknown"),
        (vec![0], "item kind 0 is unknown"),
        (vec![2, 0, 0], "past the end of its block"),
        (issue.clone(), "device 0 has no name"),
        (
            [&named[..], &[2, 9], &issue[2..]].concat(),
            "operation 9 is unknown",
        ),
        (completion.clone(), "without an issue"),
        (
            [&named[..], &issue, &completion, &completion].concat(),
            "completes twice",
        ),
    ];
    for (payload, says) in cases {
        let bytes = [header.clone(), block(&payload)].concat();
        for partial in [false, true] {
            let said = read(&bytes, partial).err().map(|error| error.to_string());
            let said = said.unwrap_or_default();
            assert!(said.contains(says), "{says}: {said}");
        }
    }
    let mut long = [header, block(&[])].concat();
    long[16 + 4..16 + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refusal(&long).contains("a block of 4294967295 bytes"));
}

#[test]
fn lost_events_are_counted_and_what_did_not_complete_is_told() {
    let mut recorder = TraceRecorder::create(Vec::new()).expect("memory");
    recorder.add_device("sda").expect("memory");
    recorder.record_issue(&request(0)).expect("memory");
    let second = recorder.record_issue(&request(1)).expect("memory");
    recorder.record_completion(second, 5000, 5).expect("memory");
    recorder.record_lost_events(17).expect("memory");
    let bytes = recorder.finish().expect("memory");
    let mut reader = open(&bytes, false).expect("a trace");
    let records: Vec<TraceRecord> = reader.by_ref().map(|one| one.expect("one")).collect();
    let ends: Vec<_> = records.iter().map(|one| one.completed_ns).collect();
    assert_eq!(ends, [None, Some(5000)]);
    assert_eq!(records[1].errno, 5);
    let notices = reader.notices();
    assert_eq!(notices.unfinished_requests, 1);
    assert_eq!(notices.dropped_lines["events that the recorder lost"], 17);
    assert_eq!(reader.devices(), ["sda"]);
}

const CHILD: &str = "DISKPERF_TEST_RECORDER";
/// Requests after which the recorder hands on what it has.
const FLUSHED_EACH: u64 = 50;

/// Is no test by itself: the process that is killed. It says how many requests it handed on.
#[test]
fn recorder_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let file = std::fs::File::create(path).expect("a file");
    let mut recorder = TraceRecorder::create(file).expect("a file");
    recorder.add_device("sda").expect("a file");
    for number in 0.. {
        let id = recorder.record_issue(&request(number)).expect("a file");
        recorder
            .record_completion(id, number * 1000 + 500, 0)
            .expect("a file");
        if (number + 1) % FLUSHED_EACH == 0 {
            recorder.flush().expect("a file");
            let said = std::io::stderr().write_all(&(number + 1).to_le_bytes());
            said.expect("somebody listens");
        }
    }
}

/// Kills a recorder after a while; how many requests it had handed on, and the file.
fn killed_after(file: &std::path::Path, wait_us: u64) -> (u64, Vec<u8>) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "recorder_that_is_killed", "--nocapture"])
        .env(CHILD, file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut told = child.stderr.take().expect("a pipe");
    let mut first = [0; 8];
    let begun = told.read_exact(&mut first);
    begun.expect("it records");
    let listener = std::thread::spawn(move || {
        let mut rest = Vec::new();
        told.read_to_end(&mut rest).expect("a pipe");
        rest
    });
    std::thread::sleep(std::time::Duration::from_micros(wait_us));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let rest = listener.join().expect("no panic");
    let last = rest.chunks_exact(8).last().unwrap_or(&first);
    let handed_on = u64::from_le_bytes(last.try_into().expect("eight bytes"));
    (handed_on, std::fs::read(file).expect("the file"))
}

#[test]
fn a_recorder_that_is_killed_leaves_all_that_it_handed_on() {
    const KILLS: u64 = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let one = |number: u64| {
        let file = folder.path().join(number.to_string());
        let (handed_on, bytes) = killed_after(&file, number * 7919 % 5000);
        let records = read(&bytes, true).unwrap_or_else(|error| panic!("kill {number}: {error}"));
        let found = records.len() as u64;
        assert!(found >= handed_on, "kill {number}: {found} of {handed_on}");
        assert!(read(&bytes, false).is_err(), "kill {number}: it has no end");
    };
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..KILLS).step_by(4).for_each(one));
        }
    });
}
