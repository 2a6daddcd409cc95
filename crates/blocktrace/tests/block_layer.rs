//! Events of the block layer, as several kernels and tools have them: recorded, and made of
//! what was recorded by the layout of the others.

use diskperf_blocktrace::{
    Form, Notices, ReadError, ReadOptions, TraceReader, TraceRecord, TracedOperation,
};
use std::io::{Cursor, Read};
use std::path::PathBuf;

type Input = Box<dyn Read + Send>;

fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A trace that was read to its end.
struct Seen {
    form: Form,
    records: Vec<TraceRecord>,
    notices: Notices,
}

fn read(files: &[Vec<u8>]) -> Result<Seen, ReadError> {
    let input = |(number, bytes): (usize, &Vec<u8>)| {
        let input: Input = Box::new(Cursor::new(bytes.clone()));
        (format!("trace.{number}"), input)
    };
    let files = files.iter().enumerate().map(input).collect();
    let mut reader = TraceReader::open_all(files, &ReadOptions::default())?;
    let records = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok(Seen {
        form: reader.form(),
        records,
        notices: reader.notices(),
    })
}

impl Seen {
    /// Fails unless each line is a request, more of one, an aside, or left out for a reason.
    fn account(&self, what: &str) {
        let lines = self.notices.line_counts;
        let left_out: u64 = self.notices.dropped_lines.values().sum();
        let left_out = left_out + self.notices.unmatched_completions;
        let all = lines.request_lines + lines.update_lines + lines.other_lines + left_out;
        assert_eq!(lines.line_count, all, "{what}: {:?}", self.notices);
        assert_eq!(lines.request_lines, self.records.len() as u64, "{what}");
    }

    fn select_records(&self, operation: TracedOperation) -> Vec<&TraceRecord> {
        let all = self.records.iter();
        all.filter(|record| record.operation == operation).collect()
    }

    /// Reads, writes, flushes, discards, writes of zeroes.
    fn counts(&self) -> [usize; 5] {
        use TracedOperation::{Discard, Flush, Read, Write, WriteZeroes};
        [Read, Write, Flush, Discard, WriteZeroes]
            .map(|operation| self.select_records(operation).len())
    }

    fn completed(&self) -> usize {
        let all = self.records.iter();
        all.filter(|record| record.completed_ns.is_some()).count()
    }
}

/// Files of blktrace of both processors.
fn blktrace(name: &str) -> Vec<Vec<u8>> {
    let of = |cpu| data(&format!("{name}.blktrace.{cpu}"));
    vec![of(0), of(1)]
}

/// The same events in version 8: what Linux 6.19 writes.
fn version_8(file: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut rest = file;
    while let Some((event, behind)) = rest.split_at_checked(48) {
        let (data, behind) = behind.split_at(usize::from(event[46]));
        rest = behind;
        let word = |at: usize| &event[at..at + 4];
        all.extend(0x6561_7408_u32.to_le_bytes());
        all.extend(&event[4..28]);
        all.extend(word(32));
        let action = u32::from_le_bytes(word(28).try_into().expect("4 bytes"));
        let sector = u64::from_le_bytes(event[16..24].try_into().expect("8 bytes"));
        // What `blkdiscard -z` wrote; version 7 has no bit for zeroes.
        let zeroes = if sector == 40_960 { 1 << 38 } else { 0 };
        all.extend((u64::from(action) | zeroes).to_le_bytes());
        all.extend(word(36));
        all.extend(word(40));
        all.extend(&event[44..48]);
        all.extend([0; 12]);
        all.extend(data);
    }
    all
}

#[test]
fn a_binary_trace_without_queue_events_has_a_request_for_each_pair() {
    for (version, files) in [
        (7, blktrace("issue-complete")),
        (
            8,
            blktrace("issue-complete")
                .iter()
                .map(|file| version_8(file))
                .collect(),
        ),
    ] {
        let seen = read(&files).expect("a trace");
        seen.account("blktrace");
        assert_eq!(seen.form, Form::Blktrace);
        let zeroes = usize::from(version == 8);
        assert_eq!(seen.counts(), [14, 34 - zeroes, 6, 1, zeroes], "{version}");
        assert_eq!(seen.completed(), 55, "version {version}");
        assert_eq!(seen.notices.unmatched_completions, 0);
    }
}

#[test]
fn a_trace_with_queue_events_has_a_request_for_each_of_them_and_all_complete() {
    let version_8 = blktrace("all").iter().map(|file| version_8(file)).collect();
    for (what, files, zeroes) in [
        ("version 7", blktrace("all"), 0),
        ("version 8", version_8, 1),
        ("blkparse", vec![data("all.blkparse")], 0),
    ] {
        let seen = read(&files).unwrap_or_else(|error| panic!("{what}: {error}"));
        seen.account(what);
        // Of 8 writes that were queued at once, 7 merged.
        assert_eq!(seen.counts(), [14, 41 - zeroes, 4, 1, zeroes], "{what}");
        assert_eq!(seen.completed(), 60, "{what}");
        assert_eq!(seen.notices.unmatched_completions, 0, "{what}");
        let durable = seen.select_records(TracedOperation::Write);
        assert_eq!(
            durable.iter().filter(|record| record.fua).count(),
            2,
            "{what}"
        );
    }
}

/// Events of one kernel in the text of others.
fn texts() -> Vec<(&'static str, String)> {
    let text = |name: &str| String::from_utf8(data(name)).expect("text");
    let (tracefs, perf) = (text("tracefs"), text("perf-script"));
    let without = |text: &str, priorities: &[&str]| {
        let mut text = text.to_owned();
        for priority in priorities {
            text = text.replace(priority, "");
        }
        text
    };
    let older = without(&tracefs, &["be,0,4 ", "none,0,0 "]);
    let without_bytes: String = older
        .lines()
        .map(|line| without_bytes(line) + "\n")
        .collect();
    let trace_cmd: String = tracefs
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            line.replace(" .....  ", "  ")
                .replace("issue: ", "issue:       ")
                + "\n"
        })
        .collect();
    let stacks: String = perf
        .lines()
        .map(|line| {
            format!("{line}\n\tffffffff81a2b3c4 blk_mq_start_request+0x84 ([kernel.kallsyms])\n\n")
        })
        .collect();
    vec![
        (
            "perf script, before 6.12",
            without(&perf, &["0x2,0,4 ", "0x0,0,0 "]),
        ),
        ("perf script, 6.18", perf),
        ("perf script -g", stacks),
        ("tracefs, before 6.12", older),
        ("tracefs, without bytes", without_bytes),
        ("trace-cmd report", format!("cpus=2\n{trace_cmd}")),
        ("tracefs, 6.19", tracefs.replace(" NS ", " WZS ")),
        ("tracefs, 6.18", tracefs),
    ]
}

/// An issue as kernels had it that did not print its bytes.
fn without_bytes(line: &str) -> String {
    match line.split_once(" (") {
        Some((before, after)) if line.contains("block_rq_issue") => {
            let before = before.trim_end_matches(|one: char| one.is_ascii_digit());
            format!("{before}({after}")
        }
        _ => line.to_owned(),
    }
}

#[test]
fn text_of_every_kernel_and_tool_holds_the_same_requests() {
    for (what, text) in texts() {
        let seen = read(&[text.into_bytes()]).unwrap_or_else(|error| panic!("{what}: {error}"));
        seen.account(what);
        assert_eq!(seen.form, Form::Ftrace, "{what}");
        assert_eq!(
            seen.counts(),
            [14, 33, 6, 1, 1],
            "{what}: {:?}",
            seen.notices
        );
        assert_eq!(seen.completed(), 55, "{what}");
        let zeroes = seen.select_records(TracedOperation::WriteZeroes)[0];
        let range = (zeroes.offset_bytes, zeroes.length_bytes);
        assert_eq!(range, (40_960 * 512, 1 << 20), "{what}");
    }
}

#[test]
fn merged_requests_complete_together_and_split_ones_with_their_last_part() {
    let line = |at_us: u64, action: &str, rest: &str| {
        format!("  8,0    0        1     0.{at_us:06}000  42  {action}  {rest}\n")
    };
    let merged = [
        line(0, "Q", "W 100 + 8 [p]"),
        line(1, "Q", "W 108 + 8 [p]"),
        line(2, "M", "W 108 + 8 [p]"),
        line(3, "D", "W 100 + 16 [p]"),
        line(9, "C", "W 100 + 16 [0]"),
    ];
    let split = [
        line(0, "Q", "R 0 + 2048 [p]"),
        line(1, "X", "R 0 / 1024 [p]"),
        line(2, "D", "R 0 + 1024 [p]"),
        line(3, "D", "R 1024 + 1024 [p]"),
        line(7, "C", "R 1024 + 1024 [0]"),
        line(8, "C", "R 0 + 512 [0]"),
        line(9, "C", "R 512 + 512 [5]"),
    ];
    let requeued = [
        line(0, "D", "W 8 + 8 [p]"),
        line(1, "R", "W 8 + 8 [11]"),
        line(2, "D", "W 8 + 8 [p]"),
        line(9, "C", "W 8 + 8 [0]"),
    ];
    for (what, lines, ends_us) in [
        ("merged", merged.concat(), &[9, 9][..]),
        ("split", split.concat(), &[9]),
        ("requeued", requeued.concat(), &[9]),
    ] {
        let seen = read(&[lines.into_bytes()]).expect(what);
        seen.account(what);
        let found = seen.records.iter().map(|record| record.completed_ns);
        let found: Vec<_> = found.map(|at| at.map(|ns| ns / 1000)).collect();
        let wanted: Vec<_> = ends_us.iter().copied().map(Some).collect();
        assert_eq!(found, wanted, "{what}");
    }
}

#[test]
fn completions_alone_are_counted_and_are_no_requests() {
    let all = String::from_utf8(data("issue-complete.blkparse")).expect("text");
    let of = |action: &str| -> Vec<u8> {
        let lines = all.lines().filter(|line| line.contains(action));
        lines
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into()
    };
    let seen = read(&[of("  C ")]).expect("a trace");
    seen.account("completions");
    assert!(seen.records.is_empty());
    // The others end flush sequences.
    assert_eq!(seen.notices.unmatched_completions, 55);
    let seen = read(&[of("  D ")]).expect("a trace");
    seen.account("issues");
    assert_eq!((seen.records.len(), seen.completed()), (55, 0));
    assert_eq!(seen.notices.unfinished_requests, 55);
}

/// tracefs' `trace` of events that are not enabled is a heading alone.
#[test]
fn a_heading_of_tracefs_is_a_trace_without_requests() {
    let text = String::from_utf8(data("tracefs")).expect("text");
    let heading = text.lines().filter(|line| line.starts_with('#'));
    let heading: String = heading.map(|line| format!("{line}\n")).collect();
    let seen = read(&[heading.into_bytes()]).expect("a trace");
    seen.account("a heading");
    assert_eq!((seen.form, seen.records.len()), (Form::Ftrace, 0));
    assert_eq!(seen.notices.line_counts.other_lines, 12);
}

#[test]
fn an_empty_file_of_an_idle_processor_is_passed_over() {
    let mut files = blktrace("issue-complete");
    files.insert(1, Vec::new());
    let seen = read(&files).expect("a trace");
    assert_eq!(seen.records.len(), 55);
}

/// As bcc's `biosnoop.py` prints it, with -Q and without, and libbpf-tools' `biosnoop`.
#[test]
fn tables_of_biosnoop_are_read() {
    let plain = "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    supervise      1950    xvda1     W 13092560   4096      0.74
0.000042    Web Content    1950    xvda1     R 13092432   8192      0.61
1.000250    jbd2/xvda1-8   170     xvda1     W 0          0         1.00
";
    let queued = "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    supervise      1950    xvda1     W 13092560   4096      0.02    0.72
0.000042    Web Content    1950    xvda1     R 13092432   8192      0.01    0.60
1.000250    jbd2/xvda1-8   170     xvda1     W 0          0         0.10    0.90
";
    let libbpf = "\
TIME(s)     COMM           PID     DISK      T      SECTOR     BYTES   QUE(ms) LAT(ms)
0.000000    supervise      1950    xvda1     WS     13092560   4096      0.020   0.720
0.000042    Web Content    1950    xvda1     RA     13092432   8192      0.010   0.600
1.000250    jbd2/xvda1-8   170     xvda1     FF     0          0         0.100   0.900
";
    for (what, table) in [("bcc", plain), ("bcc -Q", queued), ("libbpf-tools", libbpf)] {
        let seen =
            read(&[table.as_bytes().to_vec()]).unwrap_or_else(|error| panic!("{what}: {error}"));
        seen.account(what);
        assert_eq!(seen.form, Form::Biosnoop, "{what}");
        let found: Vec<_> = seen
            .records
            .iter()
            .map(|of| {
                (
                    of.issued_ns,
                    of.response_ns(),
                    of.operation,
                    of.offset_bytes,
                    of.length_bytes,
                )
            })
            .collect();
        use TracedOperation::{Flush, Read, Write};
        let wanted = [
            (0, Some(740_000), Write, 13_092_560 * 512, 4096),
            (172_000, Some(610_000), Read, 13_092_432 * 512, 8192),
            (999_990_000, Some(1_000_000), Flush, 0, 0),
        ];
        assert_eq!(found, wanted, "{what}");
    }
    let bpftrace = "\
Attaching 4 probes...
TIME(ms)     DEVICE         COMM             PID    LAT(ms)
611          nvme0n1        bash             4179        10
";
    let error = read(&[bpftrace.as_bytes().to_vec()])
        .err()
        .expect("no sectors");
    let error = error.to_string();
    assert!(
        error.contains("no column SECTOR") && error.contains("bcc"),
        "{error}"
    );
}

/// Steps of a trace, and what is found of each request in the order of issue: the time of its
/// completion. Steps come one a microsecond.
struct Completions<'a> {
    name: &'a str,
    steps: &'a [&'a str],
    completed_us: &'a [Option<u64>],
    without_issue: u64,
}

#[test]
fn completions_are_of_the_bytes_that_they_name() {
    let some = |us: &[u64]| us.iter().map(|us| Some(*us)).collect::<Vec<_>>();
    for case in [
        Completions {
            name: "the same half twice",
            steps: &["Q 100 + 16", "C 100 + 8", "C 100 + 8"],
            completed_us: &[None],
            without_issue: 1,
        },
        Completions {
            name: "both halves, in either order",
            steps: &["Q 100 + 16", "C 108 + 8", "C 100 + 8"],
            completed_us: &some(&[2]),
            without_issue: 0,
        },
        Completions {
            name: "half, then all",
            steps: &["Q 100 + 16", "C 100 + 8", "C 100 + 16"],
            completed_us: &some(&[2]),
            without_issue: 0,
        },
        Completions {
            name: "parts that overlap",
            steps: &["Q 100 + 16", "C 100 + 10", "C 106 + 8", "C 112 + 4"],
            completed_us: &some(&[3]),
            without_issue: 0,
        },
        Completions {
            name: "a longer request that begins before a nearer one",
            steps: &["Q 100 + 8", "Q 50 + 200", "C 60 + 8", "C 110 + 8"],
            completed_us: &[None, None],
            without_issue: 0,
        },
        Completions {
            name: "all of a longer one around a shorter one",
            steps: &["Q 100 + 8", "Q 50 + 200", "C 50 + 200", "C 100 + 8"],
            completed_us: &some(&[3, 2]),
            without_issue: 0,
        },
        Completions {
            name: "of several sizes at one place, the one of the size",
            steps: &["Q 100 + 8", "Q 100 + 16", "C 100 + 16", "C 100 + 8"],
            completed_us: &some(&[3, 2]),
            without_issue: 0,
        },
        Completions {
            name: "twice the same, the older first",
            steps: &["Q 100 + 8", "Q 100 + 8", "C 100 + 8", "C 100 + 8"],
            completed_us: &some(&[2, 3]),
            without_issue: 0,
        },
        Completions {
            name: "several that were merged",
            steps: &["Q 108 + 8", "Q 100 + 8", "Q 116 + 32", "C 100 + 48"],
            completed_us: &some(&[3, 3, 3]),
            without_issue: 0,
        },
        Completions {
            name: "beside what is under way",
            steps: &["Q 100 + 8", "C 92 + 8", "C 108 + 8"],
            completed_us: &[None],
            without_issue: 2,
        },
    ] {
        let line = |(number, step): (usize, &&str)| {
            let (what, range) = step.split_once(' ').expect("a step");
            format!("8,0 0 1 0.{number:06} 42 {what} R {range} [p]\n")
        };
        let text: String = case.steps.iter().enumerate().map(line).collect();
        let seen = read(&[text.into_bytes()]).expect(case.name);
        seen.account(case.name);
        let completed = |record: &TraceRecord| record.completed_ns.map(|ns| ns / 1000);
        let found: Vec<_> = seen.records.iter().map(completed).collect();
        assert_eq!(found, case.completed_us, "{}", case.name);
        assert_eq!(
            seen.notices.unmatched_completions, case.without_issue,
            "{}",
            case.name
        );
    }
}

/// A text of blkparse that ends anywhere is read in whole, or refused with its last line; what
/// is neither an event nor the summary is counted as that.
#[test]
fn a_text_of_blkparse_ends_with_an_event() {
    let text = "  8,16   1        1     0.000000000   412  Q   R 1000 + 8 [fio]\n\
                \x20 8,16   1        2     0.000010000   412  D   R 1000 + 8 [fio]\n\
                \x20 8,16   1        3     0.000110000     0  C   R 1000 + 8 [0]\n";
    let event = "  8,16   1        4     0.239021000   412  D   R 1016 + 8 [fio]\n";
    let begins = event.find("8,16").expect("a device") + "8,16 ".len();
    for end in begins..event.find(" + ").expect("a length") {
        let cut = format!("{text}{}", &event[..end]);
        let error = read(&[cut.clone().into_bytes()]).err();
        let error = error.unwrap_or_else(|| panic!("{cut}")).to_string();
        assert!(
            error.contains("line 4") && error.contains("--partial"),
            "{error}"
        );
    }
    let summary = "CPU1 (8,16):\n Reads Queued:           2,        8KiB\t Writes Queued: 0\n\
                   \nThroughput (R/W): 1KiB/s / 0KiB/s\nEvents (8,16): 4 entries\nSkips: 0 forward\n";
    let seen = read(&[format!("garbage line here\n{text}{event}{summary}").into_bytes()]);
    let seen = seen.expect("a trace");
    seen.account("garbage");
    assert_eq!(seen.form, Form::Blkparse);
    let garbage = "text that is neither an event nor of the summary of blkparse";
    assert_eq!(
        seen.notices.dropped_lines.get(garbage),
        Some(&1),
        "{:?}",
        seen.notices
    );
}
