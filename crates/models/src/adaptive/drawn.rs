//! Random workloads. The draw determines the number and kind of simultaneous programs, their
//! distance, the use of the file system, the sequence and size of calls, and the share of writes.

use super::workload::{AdaptiveWorkload, WorkloadPart};
use diskperf_machine::{RandomStream, RandomStreams};
use diskperf_timeline::units::{MIB, format_size};

const CYLINDER_COUNT: u64 = 620;
const CYLINDER_SECTORS: u64 = 27 * 67;
const PARTITION_CYLINDERS: u64 = 80;

/// Bytes that a sequential program transfers, and requests that a random one makes: a few seconds
/// of either.
const SEQUENTIAL_BYTES: u64 = 4 * MIB;
const RANDOM_REQUEST_COUNT: u64 = 240;
const TREE_BYTES: u64 = 12 * MIB;

/// Draws `count` random workloads. Equal seeds give equal workloads.
pub fn draw_workloads(seed: u64, count: usize) -> Vec<AdaptiveWorkload> {
    (0..count)
        .map(|number| {
            let mut stream = RandomStreams::new(seed).named_stream(&format!("workload {number}"));
            draw_workload(&mut stream, number)
        })
        .collect()
}

fn pick_one<'a, T: ?Sized>(stream: &mut RandomStream, of: &[&'a T]) -> &'a T {
    of[stream.draw_below(of.len() as u64) as usize]
}

fn draw_workload(stream: &mut RandomStream, number: usize) -> AdaptiveWorkload {
    let raw = stream.draw_with_probability(0.5);
    let volumes = 1 + stream.draw_below(3);
    let slot = CYLINDER_COUNT / volumes;
    let mut partitions = Vec::new();
    let mut parts = Vec::new();
    let mut names = Vec::new();
    for volume in 0..volumes {
        let cylinder = volume * slot + stream.draw_below(slot - PARTITION_CYLINDERS);
        let sectors = PARTITION_CYLINDERS * CYLINDER_SECTORS;
        partitions.push(format!("[{cylinder}, {sectors}]"));
        let (part, name) = draw_part(stream, raw);
        parts.push(part);
        names.push(name);
    }
    let mut settings = vec![format!("drive.1.partitions=[{}]", partitions.join(", "))];
    if raw {
        settings.push("filesystem=none".to_owned());
    }
    AdaptiveWorkload {
        name: format!(
            "{}. {}: {}",
            number + 1,
            if raw { "raw" } else { "file" },
            names.join(" + ")
        ),
        settings,
        has_other_volume: false,
        phases: vec![parts],
        counts_first_phase: false,
    }
}

fn draw_part(stream: &mut RandomStream, raw: bool) -> (WorkloadPart, String) {
    let think_ns = *pick_one(stream, &[&"0", &"0", &"2000000", &"10000000"]);
    let (mut part, mut name) = match stream.draw_below(10) {
        0..=2 => draw_sequential(stream, raw),
        3..=4 => draw_scan(stream, raw),
        5..=7 => draw_random(stream),
        8 if raw => draw_copy(stream),
        8 => draw_fsck(stream),
        _ => match stream.draw_with_probability(0.5) {
            true => draw_copy(stream),
            false => draw_rewrite(stream),
        },
    };
    if think_ns != "0" {
        part.program
            .set_parameter("think_ns", think_ns)
            .expect("it is a number");
        name += &format!(" thinking {} ms", think_ns.trim_end_matches("000000"));
    }
    (part, name)
}

fn draw_call_bytes(stream: &mut RandomStream, raw: bool) -> &'static str {
    match raw {
        true => pick_one(stream, &["2048", "4096", "8192", "16384", "34304", "65536"]),
        false => pick_one(stream, &["1024", "4096", "8192", "16384"]),
    }
}

fn draw_sequential(stream: &mut RandomStream, raw: bool) -> (WorkloadPart, String) {
    let call_bytes = draw_call_bytes(stream, raw);
    let parameters = [("call_bytes", call_bytes), ("destination", "null")];
    let part = WorkloadPart::new("copy", SEQUENTIAL_BYTES, &parameters);
    (part, format!("read by {call_bytes}"))
}

fn draw_scan(stream: &mut RandomStream, raw: bool) -> (WorkloadPart, String) {
    let call_bytes = draw_call_bytes(stream, raw);
    let readers = *pick_one(stream, &[&"2", &"3", &"4"]);
    let areas = *pick_one(stream, &[&"same", &"different"]);
    let offset_ms = *pick_one(stream, &[&"0", &"100", &"500"]);
    let parameters = [
        ("call_bytes", call_bytes),
        ("readers", readers),
        ("areas", areas),
        ("offset_ms", offset_ms),
    ];
    let part = WorkloadPart::new("scan", SEQUENTIAL_BYTES / 4, &parameters);
    let name = format!("{readers} readers of {areas} areas by {call_bytes}, {offset_ms} ms apart");
    (part, name)
}

fn draw_random(stream: &mut RandomStream) -> (WorkloadPart, String) {
    let (sizes, mean_bytes) = *pick_one(
        stream,
        &[
            &("2048:1", 2048),
            &("4096:1,8192:1", 6144),
            &("8192:1", 8192),
            &("1024:2,8192:1,32768:1", 10_752),
        ],
    );
    let write_share = *pick_one(stream, &[&"0", &"0", &"0.2", &"0.5"]);
    let local_share = *pick_one(stream, &[&"0", &"0.5", &"0.9"]);
    let local_bytes = *pick_one(stream, &[&"16K", &"64K", &"1M"]);
    let area_bytes = *pick_one(stream, &[&MIB, &(4 * MIB), &(12 * MIB)]);
    let area = area_bytes.to_string();
    let parameters = [
        ("sizes", sizes),
        ("write_share", write_share),
        ("local_share", local_share),
        ("local_bytes", local_bytes),
        ("area_bytes", area.as_str()),
        ("align_bytes", "1024"),
    ];
    let part = WorkloadPart::new("random_mix", RANDOM_REQUEST_COUNT * mean_bytes, &parameters);
    let name = format!(
        "at random {sizes} in {}, {write_share} writes, {local_share} within {local_bytes}",
        format_size(area_bytes)
    );
    (part, name)
}

fn draw_copy(stream: &mut RandomStream) -> (WorkloadPart, String) {
    let call_bytes = *pick_one(stream, &[&"8192", &"16384", &"34304"]);
    let parameters = [("call_bytes", call_bytes), ("destination", "same")];
    let part = WorkloadPart::new("copy", SEQUENTIAL_BYTES / 2, &parameters);
    (part, format!("copied by {call_bytes}"))
}

fn draw_rewrite(stream: &mut RandomStream) -> (WorkloadPart, String) {
    let call_bytes = *pick_one(stream, &[&"4096", &"8192", &"16384"]);
    let parameters = [("call_bytes", call_bytes)];
    let part = WorkloadPart::new("rewrite_8192", SEQUENTIAL_BYTES / 2, &parameters);
    (part, format!("written over by {call_bytes}"))
}

fn draw_fsck(stream: &mut RandomStream) -> (WorkloadPart, String) {
    let checkers = *pick_one(stream, &[&"1", &"2"]);
    let parameters = [("checkers", checkers), ("offset_ms", "1000")];
    let part = WorkloadPart::new("fsck", TREE_BYTES, &parameters);
    (part, format!("{checkers} fsck"))
}
