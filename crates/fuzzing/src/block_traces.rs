//! Fuzz target for block traces in all formats, which are recognized by their first bytes or by
//! name.

use diskperf_blocktrace::summary::Summarizer;
use diskperf_blocktrace::{Form, ReadOptions, TimeUnit, TraceReader};
use std::io::Cursor;

use super::{FuzzBody, FuzzTarget, to_byte_inputs};

pub(super) const BLOCK_TRACE: FuzzTarget = FuzzTarget {
    name: "block_trace",
    make_body: make_block_trace_body,
    make_seeds: || {
        to_byte_inputs([
            "\u{1}fio version 3 iolog\n0 d add\n1500 d read 61440 4096\n",
            "\u{2}  8,16   0   1   0.000000000  4242  Q   R 2048 + 8 [prog]\n  8,16   0   3   0.000100000     0  C   R 2048 + 8 [0]\n",
            "\u{4} p-1 [001] ..... 1945.251028: block_rq_issue: 7,1 WS 8192 () 0 + 16 be,0,4 [p]\n",
            "\u{4}cpus=2\n p-1 [001] 5.1: block_rq_issue:       7,1 WZS 8192 () 0 + 16 [p]\n p-1 [001] 5.2: block_rq_complete:       7,1 WZS () 0 + 16 [0]\n",
            "\u{4}p 1 [001] 5.1: block:block_rq_issue: 7,1 FF 0 () 0 + 0 0x0,0,0 [p]\n p 1 [001] 5.2: block:block_rq_complete: 7,1 WS () 0 + 0 [0]\n",
            "\u{2}  8,16   0   1   0.000000000  42  Q   W 100 + 8 [p]\n  8,16   0   2   0.000001000  42  M   W 108 + 8 [p]\n  8,16   0   3   0.000002000  42  C   W 100 + 16 [0]\n",
            "\u{13}TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.1 a b 1 sda WS 8 4096 0.02 0.72\n",
            "\u{5}128166400000000000,web,0,Write,8192,4096,1500\n",
            "\u{6}0,20941264,8192,W,0.551706\n",
            "\u{7}Timestamp,Response,IOType,LUN,Offset,Size\n1455592080.012345000,0.0005,R,3,4096,8192\n",
            "\u{8}12,W,126976,4096,1577808000000411\n",
            "\u{9}1538323200,4096,8,1,1283\n",
            "\u{b}2,1000,28,4096,8\n",
            "\u{c}12.345 0 70336 16 1\n",
            "\u{d}R Miss 70336 16 12500.0 8000.0\n",
            "\u{f}$$TR_IOREC-1.3 x\ndisks = {\n 0 -> { sectorsize = 256 }\n}\n\u{c}",
            "\u{11}1000,0.5,read,8,16,sda\n",
            "\u{12}\u{1}\0\u{1}\0\0\0\0\0x\u{4}\0\0\0\0\0\0\0\u{7}\0\0\0\0\0\0\0",
            "\u{12}\u{1}\0\u{1}\0\0\0\0\0x\u{2}\u{1}\0\0\0\0\0\0\u{7}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{2}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{3}\0\u{5}\0\0\0\0\0\0\0\0\0\0\0\0\0\u{9}\0\0\0\0\0\0\0",
        ])
    },
    keywords: &[
        "fio version 2 iolog\n",
        "fio version 3 iolog\n",
        "block_rq_complete: ",
        "18446744073709551615",
        "Timestamp",
        "Read",
        "Write",
        "FWS",
        "WZS",
        "block:block_rq_issue: ",
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
        "[65531]",
        " + ",
        ",",
        ".",
    ],
};

/// Builds a trace in diskperf's own format from the given items, because random bytes never have a
/// valid checksum.
fn encode_blocks(items: &[u8]) -> Vec<u8> {
    let sum = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let mut trace = b"\x89dptr\r\n\x1a\x01\0\0\0".to_vec();
    trace.extend(sum(&trace));
    for (number, payload) in (0u64..).zip(items.chunks(1 << 10)) {
        let mut block = b"DBLK".to_vec();
        block.extend((payload.len() as u32).to_le_bytes());
        block.extend(number.to_le_bytes());
        block.extend([0; 4]);
        let of_both = sum(&[&block, payload].concat());
        block.extend(of_both);
        block.extend(payload);
        trace.extend(block);
    }
    trace
}

/// Creates the parser call. The first byte selects the format and whether the trace may be
/// truncated; the remaining bytes are the trace.
fn make_block_trace_body() -> FuzzBody {
    Box::new(|bytes| {
        let Some((choice, rest)) = bytes.split_first() else {
            return;
        };
        let number = usize::from(*choice & 0x1f);
        let columns = "time_us=1,response_ms=2,op=3,sector=4,sectors=5,device=6";
        let options = ReadOptions {
            form: Form::ALL.get(number).copied(),
            columns: (Form::ALL.get(number) == Some(&Form::Csv))
                .then(|| columns.parse().expect("columns")),
            time_unit: (*choice & 0x40 != 0).then_some(TimeUnit::Nanoseconds),
            is_partial_allowed: *choice & 0x80 != 0,
        };
        let trace = match options.form {
            Some(Form::Diskperf) => encode_blocks(rest),
            _ => rest.to_vec(),
        };
        let input = Box::new(Cursor::new(trace));
        let Ok(mut reader) = TraceReader::open("trace", input, &options) else {
            return;
        };
        let mut summarizer = Summarizer::with_sampled_blocks(256);
        let mut last_ns = 0;
        for record in reader.by_ref() {
            let Ok(record) = record else { break };
            assert!(record.completed_ns.is_none_or(|at| at >= record.issued_ns));
            last_ns = last_ns.max(record.issued_ns);
            summarizer.add(&record);
        }
        let summary = summarizer.finish(reader.devices());
        assert_eq!(summary.span_ns, last_ns);
        let notices = reader.notices();
        let (lines, dropped) = (
            notices.line_counts,
            notices.dropped_lines.values().sum::<u64>(),
        );
        let left_out = dropped + notices.unmatched_completions;
        if reader.form() != Form::Diskperf {
            let all = lines.request_lines + lines.update_lines + lines.other_lines + left_out;
            assert_eq!(lines.line_count, all);
        }
    })
}
