//! Log of HdrHistogram 1.3: one line for each operation and repetition, with a tag.
//!
//! A run keeps no wall-clock time of a repetition. The timed parts of a result's repetitions follow
//! one another from the start of the log.

use super::ExchangeError;
use super::figures::{ExportedResult, OperationLatencies, list_latencies};
use diskperf_timeline::{Histogram, Nanoseconds};
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, UNIX_EPOCH};

/// Highest latency of the histograms: 2^50 ns, that of the recorders.
const LATENCY_NS_MAX: u64 = 1 << 50;

/// Maximum values are shown in milliseconds, as other writers do.
const NS_PER_MS: f64 = 1e6;

pub(super) fn render_log(results: &[ExportedResult]) -> Result<String, ExchangeError> {
    let started_ms = results
        .iter()
        .map(|result| result.view.run.started_unix_ms)
        .min();
    let started = UNIX_EPOCH + Duration::from_millis(started_ms.unwrap_or_default());
    let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut line_count = 0;
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.with_start_time(started);
    builder.with_max_value_divisor(NS_PER_MS);
    let mut log = builder
        .begin_log_with(&mut bytes, &mut serializer)
        .expect("memory takes a heading");
    for result in results {
        let name = encode_tag(&result.name);
        let mut at = Nanoseconds::default();
        for repetition in result.row.result.kept_repetitions() {
            let elapsed = repetition.elapsed_time();
            for OperationLatencies {
                operation,
                latencies,
            } in list_latencies([repetition])
            {
                let tag = format!("{name}.{operation}");
                log.write_histogram(
                    &to_hdr(&latencies),
                    Duration::from_nanos(at.0),
                    Duration::from_nanos(elapsed.0),
                    Tag::new(&tag),
                )
                .expect("memory takes a histogram of the recorders' range");
                line_count += 1;
            }
            at = at + elapsed;
        }
    }
    match line_count {
        0 => Err(ExchangeError::NoLatencies),
        _ => Ok(String::from_utf8(bytes).expect("a log is text")),
    }
}

fn to_hdr(latencies: &Histogram) -> Hdr<u64> {
    let mut histogram =
        Hdr::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are those of the recorders");
    for (latency_ns, count) in latencies.buckets() {
        histogram.saturating_record_n((*latency_ns).min(LATENCY_NS_MAX), *count);
    }
    histogram
}

/// Encodes a name as a tag, which has neither blanks nor commas: a blank becomes `+`, other special
/// characters `%` and their code.
fn encode_tag(name: &str) -> String {
    let mut tag = String::new();
    for character in name.chars() {
        match character {
            ' ' => tag.push('+'),
            ',' | '+' | '%' => tag += &format!("%{:02X}", u32::from(character)),
            other if other.is_whitespace() => tag.push('_'),
            other => tag.push(other),
        }
    }
    tag
}
