//! Each form by the lines that its documents have, round trips through what can be written,
//! and files that are none.

use diskperf_blocktrace::{
    CsvColumns, Form, ReadError, ReadOptions, TraceReader, TraceRecord, TraceWriter,
    TracedOperation,
};
use proptest::prelude::*;
use std::io::{Read as _, Write};

fn read_with(
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Form, Vec<TraceRecord>, TraceReader), ReadError> {
    let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let mut reader = TraceReader::open("trace", input, options)?;
    let form = reader.form();
    let records: Result<Vec<TraceRecord>, ReadError> = reader.by_ref().collect();
    Ok((form, records?, reader))
}

/// A trace of which each line is a request, says more of one, is an aside, or is left out
/// for a reason.
fn read(text: &str) -> (Form, Vec<TraceRecord>) {
    let (form, records, reader) = read_with(text.as_bytes(), &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    let (lines, notices) = (reader.notices().line_counts, reader.notices());
    let left_out = notices.dropped_lines.values().sum::<u64>() + notices.unmatched_completions;
    let all = lines.request_lines + lines.update_lines + lines.other_lines + left_out;
    assert_eq!(
        (lines.line_count, lines.line_count),
        (all, text.lines().count() as u64),
        "{text}"
    );
    assert_eq!(lines.request_lines, records.len() as u64, "{text}");
    (form, records)
}

fn options(form: &str) -> ReadOptions {
    ReadOptions {
        form: Some(form.parse().expect("a form")),
        ..ReadOptions::default()
    }
}

/// Time, what, offset, length, response.
type Said = (u64, TracedOperation, u64, u64, Option<u64>);

fn summarize_record(record: &TraceRecord) -> Said {
    (
        record.issued_ns,
        record.operation,
        record.offset_bytes,
        record.length_bytes,
        record.response_ns(),
    )
}

use TracedOperation::{Discard, Flush, Read as R, Write as W};

#[test]
fn forms_are_told_by_their_lines_and_read() {
    let cases: [(&str, &str, &[Said]); 13] = [
        (
            "fio-iolog-3",
            "fio version 3 iolog\n0 data.0 add\n0 data.0 open\n1500 data.0 read 61440 4096\n2000 data.0 datasync 0 0\n2500 data.0 trim 0 8192\n3000 data.0 close\n",
            &[
                (0, R, 61440, 4096, None),
                (500_000, Flush, 0, 0, None),
                (1_000_000, Discard, 0, 8192, None),
            ],
        ),
        (
            "fio-iolog-2",
            "fio version 2 iolog\nf add\nf open\nf write 0 512\nf wait 5 0\nf read 512 512\nf close\n",
            &[(0, W, 0, 512, None), (5_000_000, R, 512, 512, None)],
        ),
        (
            "blkparse",
            "  8,16   0   1   0.000000000  4242  Q   R 2048 + 8 [prog]\n  8,16   0   2   0.000010000  4242  D   R 2048 + 8 [prog]\n  8,16   0   3   0.000100000     0  C   R 2048 + 8 [0]\n  8,16   1   1   0.000200000  4242  Q FWS [prog]\n  8,16   1   2   0.000900000     0  C FWS [65531]\nCPU0 (8,16):\n Reads Queued:   1,   4KiB\n",
            &[
                (0, R, 1 << 20, 4096, Some(100_000)),
                (200_000, Flush, 0, 0, Some(700_000)),
            ],
        ),
        (
            "ftrace",
            "# tracer: nop\n prog-321 [001] ..... 1945.251028: block_rq_issue: 7,1 WS 8192 () 0 + 16 be,0,4 [prog]\n <idle>-0 [001] ..s.. 1945.251128: block_rq_complete: 7,1 WS () 0 + 16 be,0,4 [0]\n",
            &[(0, W, 0, 8192, Some(100_000))],
        ),
        (
            "msr",
            "128166400000000000,web,0,Write,8192,4096,1500\n128166400000020000,web,0,Read,0,512,1500\n128166400000010000,web,1,Read,512,512,10\n",
            &[
                (0, W, 8192, 4096, Some(150_000)),
                (1_000_000, R, 512, 512, Some(1000)),
                (2_000_000, R, 0, 512, Some(150_000)),
            ],
        ),
        (
            "spc",
            "0,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n1,3,512,r,0.600001,7\n",
            &[
                (0, W, 20941264 * 512, 8192, None),
                (2_335_000, W, 20939840 * 512, 8192, None),
                (48_295_000, R, 1536, 512, None),
            ],
        ),
        (
            "systor17",
            "Timestamp,Response,IOType,LUN,Offset,Size\n1455592080.012345000,0.000500000,R,3,4096,8192\n1455592080.013345000,,,3,0,512\n1455592081.012345000,0.001000000,W,3,0,512\n",
            &[
                (0, R, 4096, 8192, Some(500_000)),
                (1_000_000_000, W, 0, 512, Some(1_000_000)),
            ],
        ),
        (
            "alibaba",
            "12,W,126976,4096,1577808000000411\n13,R,0,512,1577808000000511\n",
            &[(0, W, 126_976, 4096, None), (100_000, R, 0, 512, None)],
        ),
        (
            "tencent",
            "1538323200,4096,8,1,1283\n1538323201,0,16,0,1284\n",
            &[
                (0, W, 2_097_152, 4096, None),
                (1_000_000_000, R, 0, 8192, None),
            ],
        ),
        (
            "vscsi-csv",
            "version,time,op,size,lbn\n2,1000,28,4096,8\n2,1100,2a,512,0\n2,1200,12,36,0\n",
            &[(0, R, 4096, 4096, None), (100_000, W, 0, 512, None)],
        ),
        (
            "disksim",
            "12.345 0 70336 16 1\n12.846 0 0 8 0\n",
            &[(0, R, 70336 * 512, 8192, None), (501_000, W, 0, 4096, None)],
        ),
        (
            "validate",
            "R Miss 70336 16 12500.0 8000.0\nW Hit 0 8 500.0 100.0\n",
            &[
                (0, R, 70336 * 512, 8192, Some(12_500_000)),
                (20_500_000, W, 0, 4096, Some(500_000)),
            ],
        ),
        (
            "alibaba",
            "device_id,opcode,offset,length,timestamp\n12,W,126976,4096,1577808000000411\n",
            &[(0, W, 126_976, 4096, None)],
        ),
    ];
    for (form, text, wanted) in cases {
        let (found, records) = read(text);
        assert_eq!(found.name(), form, "{text}");
        let found: Vec<Said> = records.iter().map(summarize_record).collect();
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn what_a_line_says_besides_is_kept() {
    let text = "  8,16   0   1   0.000000000  42  Q WFS 8 + 8 [p]\n  8,16   0   3   0.000100000  0  C WFS 8 + 8 [65531]\n";
    let record = read(text).1[0];
    assert!(record.fua && record.sync);
    assert_eq!(record.errno, 5, "EIO");
    let closed = read("R Miss 8 8 100.0 50.0\nR Miss 8 8 100.0 50.0\n").1;
    let thinks: Vec<_> = closed.iter().map(|record| record.think_ns).collect();
    assert_eq!(thinks, [None, Some(50_000)]);
}

#[test]
fn what_is_ambiguous_is_refused_with_what_says_it() {
    for (text, says) in [
        ("", "it is empty"),
        ("12 0 70336 16 1\n13 0 0 16 0\n", "--time-unit"),
        ("1,2,3\n4,5,6\n", "--columns"),
        ("hello, world\n", "--form"),
        ("\u{0}\u{1}\u{2}binary garbage", "none of the binary forms"),
    ] {
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(says), "{text:?}: {error}");
    }
    let version_9 = [9u8, 0x74, 0x61, 0x65];
    let error = read_with(&version_9, &ReadOptions::default()).err();
    assert!(error.is_some_and(|error| error.to_string().contains("version 9")));
}

/// Headings that people put before a form, and the mark that Windows puts before text.
#[test]
fn headings_and_a_byte_order_mark_are_passed_over() {
    let bodies = [
        (
            "msr",
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "128166400000000000,web,0,Write,8192,4096,1500",
        ),
        (
            "spc",
            "ASU,LBA,Size,Opcode,Timestamp",
            "0,20941264,8192,W,0.551706",
        ),
        (
            "alibaba",
            "device_id,opcode,offset,length,timestamp",
            "12,W,126976,4096,1577808000000411",
        ),
        (
            "tencent",
            "Timestamp,Offset,Size,IOType,VolumeID",
            "1538323200,4096,8,1,1283",
        ),
        (
            "systor17",
            "Timestamp,Response,IOType,LUN,Offset,Size",
            "1455592080.012345000,0.000500000,R,3,4096,8192",
        ),
        ("vscsi-csv", "version,time,op,size,lbn", "2,1000,28,4096,8"),
        ("csv", "time_ns,op,offset,length", "1000,R,0,4096"),
    ];
    for (form, heading, line) in bodies {
        for text in [
            format!("{heading}\n{line}\n"),
            format!("\u{feff}{heading}\r\n{line}\r\n"),
            format!("\u{feff}\n{heading}\n{line}\n"),
        ] {
            let (found, records) = read(&text);
            assert_eq!((found.name(), records.len()), (form, 1), "{text:?}");
        }
        if form != "csv" {
            let (found, records) = read(&format!("\u{feff}{line}\n"));
            assert_eq!((found.name(), records.len()), (form, 1), "{line}");
        }
    }
}

/// A heading that has its time elsewhere than a form has it is of another table: of one whose
/// columns it names in usual words, or of one that `--columns` must name.
#[test]
fn a_heading_of_other_columns_is_of_no_form_without_one() {
    let rows = "3291,R,688607232,4096,3237\n5338,W,4096,8192,120\n";
    for heading in [
        "timestamp_us,op,offset,size,latency_us",
        "Time_us,Operation,offset_bytes,Bytes,Response_us",
    ] {
        let (form, records) = read(&format!("{heading}\n{rows}"));
        assert_eq!(form, Form::Csv, "{heading}");
        let found: Vec<Said> = records.iter().map(summarize_record).collect();
        let wanted = [
            (0, R, 688_607_232, 4096, Some(3_237_000)),
            (2_047_000, W, 4096, 8192, Some(120_000)),
        ];
        assert_eq!(found, wanted, "{heading}");
    }
    for heading in [
        "timestamp,op,offset,size,latency",
        "size_bytes,op,time,size,bytes",
    ] {
        let text = format!("{heading}\n{rows}");
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err();
        let error = error.unwrap_or_else(|| panic!("{heading}")).to_string();
        assert!(
            error.contains("line 1") && error.contains("other than"),
            "{error}"
        );
    }
}

/// By number or by name, between commas, semicolons, tabs or blanks, with quotes or without.
#[test]
fn a_table_is_read_by_its_columns_whatever_stands_between_them() {
    let by_number = "time_us=1,op=3,offset=4,length=5";
    let by_name = "time_us=When,op=type,offset=Byte offset,length=Size";
    let heading = ["when", "\"Who\"", "Type", "Byte offset", "Size"];
    let row = ["1000", "sda", "WS", "8192", "512"];
    for separator in [",", ", ", ";", "\t", " \t"] {
        let text = format!("{}\n{}\n", heading.join(separator), row.join(separator));
        for columns in [by_number, by_name] {
            let options = ReadOptions {
                columns: Some(columns.parse().expect("columns")),
                ..ReadOptions::default()
            };
            let (_, records, reader) = read_with(text.as_bytes(), &options).expect(&text);
            let found: Vec<Said> = records.iter().map(summarize_record).collect();
            assert_eq!(found, [(0, W, 8192, 512, None)], "{text:?}");
            assert_eq!(reader.notices().line_counts.other_lines, 1);
        }
    }
    let blanks = "time_us=1 op=2\toffset=3 length=4";
    let options = ReadOptions {
        columns: Some(blanks.parse().expect("columns")),
        ..ReadOptions::default()
    };
    let text = b"t op where how\n  10   R    0  512\n 20 zeroes 512 512\n";
    let (_, records, _) = read_with(text, &options).expect("a trace");
    let found: Vec<TracedOperation> = records.iter().map(|record| record.operation).collect();
    assert_eq!(found, [R, TracedOperation::WriteZeroes]);
    let absent = "time_us=when,op=type,offset=address,length=size";
    let options = ReadOptions {
        columns: Some(absent.parse().expect("columns")),
        ..ReadOptions::default()
    };
    let error = read_with(b"when,type,offset,size\n1,R,0,512\n", &options).err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    let says = "no column `address`; its columns are when, type, offset, size";
    assert!(error.contains(says), "{error}");
}

#[test]
fn where_one_form_fits_but_for_a_line_the_message_names_both() {
    let spc = "0,1,512,W,0.5\n0,2,512,R,0.6\n0,3,512,Q,0.7\n0,4,512,R,0.8\n";
    let msr = "128166400000000000,web,0,Write,8192,4096,1500\n128166400000000001,web,0,Read,0\n128166400000000002,web,0,Read,0,512,1\n";
    let perf = " fio 1 [000] 1.5: block:block_rq_issue: 7,0 R 4096 () 0 + 8 [fio]\nsegfault\n fio 1 [000] 1.6: block:block_rq_complete: 7,0 R () 0 + 8 [0]\n";
    for (text, form, line, problem) in [
        (spc, "spc", "line 3", "`Q` is not a read or a write"),
        (msr, "msr", "line 2", "5 comma-separated fields"),
        (perf, "ftrace", "line 2", "`segfault` is not an event"),
    ] {
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        for says in [
            format!("the form {form} except for {line}: "),
            problem.to_owned(),
        ] {
            assert!(error.contains(&says), "{error}");
        }
    }
}

#[test]
fn empty_lines_are_counted_and_limited() {
    let text = "0,1,512,W,0.5\n\n\n0,2,512,R,0.6\n";
    let (_, records, reader) =
        read_with(text.as_bytes(), &ReadOptions::default()).expect("a trace");
    assert_eq!(
        (records.len(), reader.notices().line_counts.other_lines),
        (2, 2)
    );
    for (begin, form) in [("0,1,512,W,0.5\n", None), ("", Some(Form::Spc))] {
        let newlines = std::io::repeat(b'\n').take(1 << 22);
        let input = begin.as_bytes().chain(newlines);
        let options = ReadOptions {
            form,
            ..ReadOptions::default()
        };
        let mut reader = TraceReader::open("newlines", Box::new(input), &options).expect("a form");
        let error = reader.find_map(Result::err).expect("no end of it");
        assert!(error.to_string().contains("are empty"), "{error}");
    }
}

#[test]
fn columns_that_somebody_names_are_read() {
    let columns: CsvColumns = "time_us=1,op=3,sector=4,sectors=5,response_ms=2,device=6"
        .parse()
        .expect("columns");
    let options = ReadOptions {
        columns: Some(columns),
        ..ReadOptions::default()
    };
    let text = "t,r,op,lba,n,dev\n1000,0.5,read,8,16,sda\n1500,1,WRITE,0,8,sdb\n";
    let (_, records, reader) = read_with(text.as_bytes(), &options).expect("a trace");
    let found: Vec<Said> = records.iter().map(summarize_record).collect();
    let wanted = [
        (0, R, 4096, 8192, Some(500_000)),
        (500_000, W, 0, 4096, Some(1_000_000)),
    ];
    assert_eq!(found, wanted);
    assert_eq!(reader.devices(), ["sda", "sdb"]);
    for (text, says) in [
        ("time_us=1,op=3,offset=4", "lacks the column length"),
        ("time_us=0,op=3", "start at 1"),
        ("time_h=1", "no unit of time"),
        ("when=1", "is not a column"),
    ] {
        let error = text.parse::<CsvColumns>().expect_err("no columns");
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// The same lines, with the pause on either side of its request.
#[test]
fn a_pause_of_validate_is_after_its_request_or_before_it() {
    let text = b"R Miss 70336 16 12500.0 8000.0\nW Hit 0 8 500.0 100.0\n";
    for (form, second_ns, think_ns) in [
        ("validate", 20_500_000, 8_000_000),
        ("validate-before", 12_600_000, 100_000),
    ] {
        let (_, records, _) = read_with(text, &options(form)).expect("a trace");
        let times: Vec<_> = records
            .iter()
            .map(|record| (record.issued_ns, record.think_ns))
            .collect();
        assert_eq!(times, [(0, None), (second_ns, Some(think_ns))], "{form}");
        let ends = records[1].completed_ns;
        assert_eq!(ends, Some(second_ns + 500_000), "{form}");
    }
}

#[test]
fn a_line_that_is_wrong_has_its_place() {
    for (form, text, says) in [
        (
            "spc",
            "0,1,512,W,0.5\n0,1,512,Q,0.6\n",
            "line 2 (byte 14): `Q` is not a read or a write",
        ),
        ("msr", "1,web,0,Write,8192,4096,1500\n", "Windows counts"),
        (
            "spc",
            "0,99999999999999999999,512,W,0.5\n",
            "is not a sector",
        ),
        ("spc", "0,1,512,W\n", "4 comma-separated fields"),
        (
            "spc",
            "0,1,512,W,0.5\n0,1,51",
            "the trace ends within this line",
        ),
        ("fio-iolog-2", "fio version 2 iolog\nf read 0\n", "3 words"),
        (
            "fio-iolog-3",
            "fio version 3 iolog\n0 f add\nfio version 3 iolog\n",
            "second header",
        ),
        ("tencent", "1,2,3,5,6\n", "0 for a read"),
        ("blktrace", "no event", "does not begin"),
    ] {
        let error = read_with(text.as_bytes(), &options(form)).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(says), "{text:?}: {error}");
    }
    let partial = ReadOptions {
        is_partial_allowed: true,
        ..options("spc")
    };
    let (_, records, reader) = read_with(b"0,1,512,W,0.5\n0,1,51", &partial).expect("a part");
    assert_eq!((records.len(), reader.notices().is_truncated), (1, true));
}

#[test]
fn gzip_and_zstd_are_seen_through() {
    let text = b"0,1,512,W,0.5\n0,2,512,R,0.6\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).expect("memory");
    let gzip = gzip.finish().expect("memory");
    // Two members, as `cat a.gz b.gz` has them.
    let both = [gzip.clone(), gzip.clone()].concat();
    let zstd = zstd::encode_all(&text[..], 1).expect("memory");
    for (bytes, requests) in [(gzip, 2), (both, 4), (zstd.clone(), 2)] {
        let (_, records, _) = read_with(&bytes, &ReadOptions::default()).expect("a trace");
        assert_eq!(records.len(), requests);
    }
    let cut = &zstd[..zstd.len() - 4];
    assert!(
        read_with(cut, &ReadOptions::default()).is_err(),
        "a stream that is cut off"
    );
}

/// An event of blktrace, version 7: time, sector, bytes, action with its flags, error.
fn event(at_ns: u64, sector: u64, bytes: u32, action: u32, error: u16, data: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    event.extend(0x6561_7407u32.to_le_bytes());
    event.extend(1u32.to_le_bytes());
    event.extend(at_ns.to_le_bytes());
    event.extend(sector.to_le_bytes());
    for word in [bytes, action, 4242, (8 << 20) | 16, 0] {
        event.extend(word.to_le_bytes());
    }
    event.extend(error.to_le_bytes());
    event.extend((data.len() as u16).to_le_bytes());
    event.extend(data);
    event
}

#[test]
fn files_of_blktrace_are_merged_by_time() {
    let (queued, complete) = (1, 8);
    let (read, write) = (1 << 16, 2 << 16);
    let notify = event(5, 0, 0, 1 << 26, 0, b"a process");
    let one = [
        notify,
        event(1000, 8, 4096, queued | read, 0, b""),
        event(9000, 16, 512, complete | write, 65531, b""),
    ]
    .concat();
    let other = [
        event(2000, 16, 512, queued | write, 0, b""),
        event(3000, 8, 4096, complete | read, 0, b""),
    ]
    .concat();
    let open = |bytes: &[u8]| -> Box<dyn std::io::Read + Send> {
        Box::new(std::io::Cursor::new(bytes.to_vec()))
    };
    let files = vec![
        ("t.0".to_owned(), open(&one)),
        ("t.1".to_owned(), open(&other)),
    ];
    let reader = TraceReader::open_all(files, &ReadOptions::default()).expect("a trace");
    let records: Vec<TraceRecord> = reader.map(|record| record.expect("a record")).collect();
    let found: Vec<Said> = records.iter().map(summarize_record).collect();
    assert_eq!(
        found,
        [
            (0, R, 4096, 4096, Some(2000)),
            (1000, W, 8192, 512, Some(7000))
        ]
    );
    assert_eq!(records[1].errno, 5);
    let cut = &one[..one.len() - 3];
    let error = read_with(cut, &ReadOptions::default())
        .err()
        .expect("it is cut");
    assert!(error.to_string().contains("record 3 (byte 105)"), "{error}");
}

#[test]
fn vscsi_and_srt_are_binary_too() {
    let mut second = Vec::new();
    for (command, at_us) in [(0x28u16, 100u64), (0x2a, 200), (0x12, 300)] {
        second.extend(command.to_le_bytes());
        second.extend(0x0200u16.to_le_bytes());
        for word in [1u32, 4096, 1] {
            second.extend(word.to_le_bytes());
        }
        for long in [8u64, at_us, 50] {
            second.extend(long.to_le_bytes());
        }
    }
    let (form, records, reader) = read_with(&second, &ReadOptions::default()).expect("a trace");
    let found: Vec<Said> = records.iter().map(summarize_record).collect();
    assert_eq!(form.name(), "vscsi-binary");
    assert_eq!(
        found,
        [
            (0, R, 4096, 4096, Some(50_000)),
            (100_000, W, 4096, 4096, Some(50_000))
        ]
    );
    assert_eq!(reader.notices().dropped_lines.values().sum::<u64>(), 1);

    let mut srt =
        b"$$TR_IOREC-1.3 x\ndisks = {\n 0 -> { name = d0\n sectorsize = 256 }\n}\n\x0c".to_vec();
    for (at_us, sector) in [(5u32, 10u32), (1005, 20)] {
        let words = [52, 3 << 16, 7, at_us, 10, 500, 1024, sector, 0, 0, 0, 1, 0];
        words
            .iter()
            .for_each(|word: &u32| srt.extend(word.to_be_bytes()));
    }
    let (form, records, _) = read_with(&srt, &ReadOptions::default()).expect("a trace");
    let found: Vec<Said> = records.iter().map(summarize_record).collect();
    assert_eq!(form.name(), "srt");
    assert_eq!(
        found,
        [
            (0, R, 2560, 1024, Some(500_000)),
            (1_000_000, R, 5120, 1024, Some(500_000))
        ]
    );
}

/// What each form that can be written carries of time, in ns.
const UNITS: [(Form, u64); 8] = [
    (Form::FioIolog3, 1000),
    (Form::Msr, 100),
    (Form::Spc, 1),
    (Form::Systor17, 1),
    (Form::Alibaba, 1000),
    (Form::DiskSim, 1),
    (Form::Validate, 1),
    (Form::Csv, 1),
];

fn records() -> impl Strategy<Value = Vec<TraceRecord>> {
    let one = (
        0..10_000_000u64,
        any::<bool>(),
        0..1u64 << 40,
        1..256u64,
        0..5_000_000u64,
    );
    proptest::collection::vec(one, 1..60).prop_map(|all| {
        let mut issued_ns = 0;
        let mut completed = 0;
        let first = all[0].0;
        all.into_iter()
            .map(|(gap, is_read, sector, sectors, response)| {
                // One at a time, for the form that has no other.
                issued_ns = completed + if completed == 0 { 0 } else { gap % (first + 1) };
                completed = issued_ns + response / 1000 * 1000 + 1000;
                TraceRecord {
                    issued_ns,
                    completed_ns: Some(completed),
                    think_ns: None,
                    operation: if is_read { R } else { W },
                    fua: false,
                    sync: false,
                    device: diskperf_blocktrace::DeviceIndex(0),
                    offset_bytes: sector * 512,
                    length_bytes: sectors * 512,
                    errno: 0,
                }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(records in records()) {
        for (form, unit) in UNITS {
            let mut writer = TraceWriter::create(Vec::new(), form).expect("a form that is written");
            writer.name_devices(&["host.0".to_owned()]);
            for record in &records {
                writer.write(record).expect("memory");
            }
            prop_assert_eq!(writer.left_out_count(), 0);
            let bytes = writer.finish().expect("memory");
            let columns = "time_ns=1,op=2,offset=3,length=4,response_ns=5,device=6";
            let options = ReadOptions {
                columns: (form == Form::Csv).then(|| columns.parse().expect("columns")),
                ..ReadOptions::default()
            };
            let (found, again, _) = read_with(&bytes, &options).expect("a trace");
            prop_assert_eq!(found, form);
            prop_assert_eq!(again.len(), records.len());
            for (one, other) in records.iter().zip(&again) {
                let here = (one.operation, one.offset_bytes, one.length_bytes);
                prop_assert_eq!(here, (other.operation, other.offset_bytes, other.length_bytes));
                prop_assert!(one.issued_ns.abs_diff(other.issued_ns) < unit.max(1000), "{}", form);
                if let Some(response) = other.response_ns() {
                    prop_assert!(response.abs_diff(one.response_ns().expect("it has")) < 1000);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        for form in Form::ALL {
            let options = ReadOptions { form: Some(form), is_partial_allowed: true, ..ReadOptions::default() };
            let _ = read_with(&bytes, &options);
        }
        let _ = read_with(&bytes, &ReadOptions::default());
    }
}

/// A trace of one request in every form that says where a request is: `OFFSET` and `LENGTH`
/// are bytes, `SECTOR` and `SECTORS` are of 512 bytes.
const PLACED: [(&str, &str); 17] = [
    (
        "fio-iolog-3",
        "fio version 3 iolog\n0 f read OFFSET LENGTH\n",
    ),
    (
        "fio-iolog-3",
        "fio version 3 iolog\n0 f trim OFFSET LENGTH\n",
    ),
    (
        "fio-iolog-2",
        "fio version 2 iolog\nf write OFFSET LENGTH\n",
    ),
    ("blkparse", "8,16 0 1 0.0 42 Q R SECTOR + SECTORS [p]\n"),
    ("blkparse", "8,16 0 1 0.0 42 D DS SECTOR + SECTORS [p]\n"),
    (
        "ftrace",
        " p-3 [001] ..... 1.2: block_rq_issue: 7,1 WS 0 () SECTOR + SECTORS be,0,4 [p]\n",
    ),
    (
        "biosnoop",
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.1 a 1 sda R SECTOR LENGTH 0.72\n",
    ),
    ("msr", "128166400000000000,web,0,Write,OFFSET,LENGTH,1500\n"),
    ("spc", "0,SECTOR,LENGTH,W,0.5\n"),
    (
        "systor17",
        "1455592080.012345000,0.0005,R,3,OFFSET,LENGTH\n",
    ),
    ("alibaba", "12,W,OFFSET,LENGTH,1577808000000411\n"),
    ("tencent", "1538323200,SECTOR,SECTORS,1,1283\n"),
    ("vscsi-csv", "2,1000,28,LENGTH,SECTOR\n"),
    ("disksim", "12.345 0 SECTOR SECTORS 1\n"),
    ("validate", "R Miss SECTOR SECTORS 12500.0 8000.0\n"),
    ("validate-before", "R Miss SECTOR SECTORS 12500.0 8000.0\n"),
    ("csv", "time_ns,op,offset,length\n1000,R,OFFSET,LENGTH\n"),
];

/// A place of a request: near an end of what 63 or 64 bits hold, or anywhere.
fn place() -> impl Strategy<Value = u64> {
    let near = (60u32..=64, 0u64..=8192, any::<bool>());
    let near = near.prop_map(|(bits, by, is_above)| {
        let end = 1u128 << bits;
        let by = u128::from(by);
        let place = if is_above { end + by } else { end - by };
        u64::try_from(place).unwrap_or(u64::MAX)
    });
    prop_oneof![near, any::<u64>(), Just(u64::MAX), Just(0)]
}

/// Every form reads a request, or names the line: no request ends beyond 2^63.
fn requires_a_place(form: &str, trace: &[u8]) {
    let read = read_with(trace, &options(form));
    match read {
        Ok((_, records, _)) => {
            let mut summarizer = diskperf_blocktrace::summary::Summarizer::with_sampled_blocks(16);
            for record in records {
                let end = record.offset_bytes.checked_add(record.length_bytes);
                assert!(end.is_some_and(|end| end <= 1 << 63), "{form}: {record:?}");
                summarizer.add(&record);
            }
            summarizer.finish(&[]);
        }
        Err(error) => {
            let error = error.to_string();
            let has_place = ["line ", "record 1", "block 1"];
            assert!(
                has_place.iter().any(|place| error.contains(place)),
                "{error}"
            );
            let says = [
                "beyond 2^63 bytes, the maximum of any storage",
                " is not ",
                "beyond 2^64",
                "beyond the end of any device",
            ];
            assert!(says.iter().any(|what| error.contains(what)), "{error}");
        }
    }
}

proptest! {
    #[test]
    fn no_request_of_any_form_ends_beyond_what_storage_has(offset in place(), length in place()) {
        for (form, template) in PLACED {
            let text = template
                .replace("COMM PID DISK T SECTOR BYTES", "COMM PID DISK T sector BYTES")
                .replace("SECTORS", &length.div_ceil(512).to_string())
                .replace("SECTOR", &(offset / 512).to_string())
                .replace("OFFSET", &offset.to_string())
                .replace("LENGTH", &length.to_string())
                .replace("T sector B", "T SECTOR B");
            requires_a_place(form, text.as_bytes());
        }
        let queued_read = 1 | 1 << 16;
        let binary = event(1000, offset / 512, length as u32, queued_read, 0, b"");
        requires_a_place("blktrace", &binary);
        let mut own = Vec::new();
        let mut recorder = diskperf_blocktrace::own::TraceRecorder::create(&mut own).expect("memory");
        let device = recorder.add_device("sda").expect("memory");
        recorder
            .record_issue(&TraceRecord {
                issued_ns: 0,
                completed_ns: None,
                think_ns: None,
                operation: R,
                fua: false,
                sync: false,
                device,
                offset_bytes: offset,
                length_bytes: length,
                errno: 0,
            })
            .expect("memory");
        recorder.finish().expect("memory");
        requires_a_place("diskperf", &own);
    }
}

/// A last line that its recorder ended is cut off as one without an end is.
#[test]
fn a_last_line_that_is_short_is_read_before_by_partial() {
    let first = "128166400000000000,web,0,Write,8192,4096,1500";
    for end in ["", "\n"] {
        let text = format!("{first}\n{first}\n128166400000000002,web,0,Re{end}");
        for form in [None, Some(Form::Msr)] {
            let options = |partial| ReadOptions {
                form,
                is_partial_allowed: partial,
                ..ReadOptions::default()
            };
            let error = read_with(text.as_bytes(), &options(false)).err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            let says = [
                "line 3",
                "4 comma-separated fields",
                "--partial reads the requests before it",
            ];
            assert!(says.iter().all(|what| error.contains(what)), "{error}");
            let (_, records, reader) = read_with(text.as_bytes(), &options(true)).expect("a part");
            assert_eq!(
                (records.len(), reader.notices().is_truncated),
                (2, true),
                "{end:?}"
            );
        }
    }
    let text = format!("{first}\n128166400000000002,web,0,Re\n{first}\n");
    let options = ReadOptions {
        is_partial_allowed: true,
        ..options("msr")
    };
    let error = read_with(text.as_bytes(), &options).err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    let says = ["line 2", "--partial can leave out only the last line"];
    assert!(says.iter().all(|what| error.contains(what)), "{error}");
}
