//! How fast lines are parsed, and a trace is summed up with its miss ratios.

use criterion::{Criterion, Throughput};
use diskperf_blocktrace::summary::Summarizer;
use diskperf_blocktrace::{ReadOptions, TraceReader};
use std::io::Cursor;

const LINES: u64 = 200_000;

/// Lines of named columns, of requests of 4 to 16 KiB at random.
fn text() -> Vec<u8> {
    let mut state = 1u64;
    let mut draw = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    let mut text = String::new();
    for number in 0..LINES {
        let what = if draw(3) == 0 { 'W' } else { 'R' };
        let (offset, length) = (draw(1 << 22) * 4096, (1 + draw(4)) * 4096);
        text += &format!("{},{what},{offset},{length}\n", number * 50);
    }
    text.into_bytes()
}

fn options() -> ReadOptions {
    let columns = "time_us=1,op=2,offset=3,length=4";
    ReadOptions {
        columns: Some(columns.parse().expect("columns")),
        ..ReadOptions::default()
    }
}

fn reader(text: &[u8]) -> TraceReader {
    let input = Box::new(Cursor::new(text.to_vec()));
    TraceReader::open("bench", input, &options()).expect("a trace")
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let text = text();
    let mut group = criterion.benchmark_group("trace");
    group
        .throughput(Throughput::Elements(LINES))
        .sample_size(20);
    group.bench_function("parsed", |bencher| {
        bencher.iter(|| {
            reader(&text)
                .map(|of| of.expect("a line").length_bytes)
                .sum::<u64>()
        });
    });
    group.bench_function("summed up", |bencher| {
        bencher.iter(|| {
            let mut summarizer = Summarizer::default();
            reader(&text).for_each(|of| summarizer.add(&of.expect("a line")));
            summarizer.finish(&[])
        });
    });
    group.finish();
    criterion.final_summary();
}
