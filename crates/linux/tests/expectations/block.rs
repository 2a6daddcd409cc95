//! What the block layer makes of bios, and where ext4 places them.

use crate::notation::{device, ext4, prepare, run};
use diskperf_linux::block::{
    Bio, BioContent, BioFlags, BioOperation, BlockRequest, DeviceLimits, DeviceQueue, FileId,
};
use diskperf_linux::effect::{Effect, Effects};
use diskperf_linux::stack::Stack;
use diskperf_linux::version::KernelVersion::{V6_1, V6_18};

fn bio(kib: u64, length_kib: u64, segments: u32) -> Bio {
    Bio {
        operation: BioOperation::Write,
        content: BioContent::Data {
            file: FileId(1),
            offset: kib * 1024,
        },
        sector: kib * 2,
        sectors: length_kib * 2,
        segments,
        flags: BioFlags {
            sync: true,
            ..BioFlags::default()
        },
    }
}

/// Requests of bios in one plug, each as offset and length in KiB.
fn plugged(limits: &DeviceLimits, bios: &[Bio]) -> Vec<String> {
    let mut effects = Effects::default();
    effects.plugged(|effects| bios.iter().for_each(|bio| effects.submit(*bio)));
    describe(&DeviceQueue::requests(limits, effects.steps()))
}

fn describe(requests: &[BlockRequest]) -> Vec<String> {
    requests
        .iter()
        .map(|request| match request.operation {
            BioOperation::Flush => "F".to_owned(),
            _ => format!("{}+{}", request.sector / 2, request.bytes() / 1024),
        })
        .collect()
}

/// Bio, and the lengths of the requests that it is split into.
struct Case {
    name: &'static str,
    limits: DeviceLimits,
    length_kib: u64,
    segments: u32,
    lengths: &'static [u64],
}

#[test]
fn a_long_bio_is_split_at_the_limits_of_the_device() {
    let of_kib = |max_sectors_kib| DeviceLimits {
        max_sectors_kib,
        ..device()
    };
    let ahci = DeviceLimits {
        segments_max: 168,
        ..of_kib(1280)
    };
    let cases = [
        Case {
            name: "40",
            limits: of_kib(512),
            length_kib: 1024,
            segments: 1,
            lengths: &[512; 2],
        },
        Case {
            name: "40",
            limits: of_kib(64),
            length_kib: 1024,
            segments: 1,
            lengths: &[64; 16],
        },
        Case {
            name: "40",
            limits: device(),
            length_kib: 1024,
            segments: 1,
            lengths: &[1024],
        },
        Case {
            name: "40",
            limits: device(),
            length_kib: 1024,
            segments: 256,
            lengths: &[512; 2],
        },
        Case {
            name: "40",
            limits: device(),
            length_kib: 4096,
            segments: 2,
            lengths: &[1280, 1280, 1280, 256],
        },
        Case {
            name: "41",
            limits: ahci,
            length_kib: 1024,
            segments: 256,
            lengths: &[672, 352],
        },
    ];
    for case in cases {
        let mut effects = Effects::default();
        effects.submit(bio(0, case.length_kib, case.segments));
        let requests = DeviceQueue::requests(&case.limits, effects.steps());
        let lengths: Vec<u64> = requests
            .iter()
            .map(|request| request.bytes() / 1024)
            .collect();
        assert_eq!(
            lengths, case.lengths,
            "{}: {} KiB",
            case.name, case.length_kib
        );
    }
}

#[test]
fn a_plug_merges_with_its_last_request() {
    let limits = device();
    let back: Vec<Bio> = [1000, 1004, 1008]
        .iter()
        .map(|kib| bio(*kib, 4, 1))
        .collect();
    assert_eq!(plugged(&limits, &back), ["1000+12"]);
    let front: Vec<Bio> = [1000, 5000, 1008, 1004]
        .iter()
        .map(|kib| bio(*kib, 4, 1))
        .collect();
    assert_eq!(plugged(&limits, &front), ["1000+4", "5000+4", "1004+8"]);
    let sequential: Vec<Bio> = (0..40).map(|index| bio(index * 4, 4, 1)).collect();
    assert_eq!(plugged(&limits, &sequential), ["0+160"]);
    // A first request of 128 KiB sends the plug to the queue.
    let long = [
        bio(0, 128, 1),
        bio(128, 128, 1),
        bio(256, 4, 1),
        bio(900, 4, 1),
        bio(904, 4, 1),
    ];
    assert_eq!(plugged(&limits, &long), ["0+260", "900+8"]);
}

#[test]
fn bios_without_a_plug_are_not_merged() {
    let mut effects = Effects::default();
    effects.submit(bio(0, 4, 1));
    effects.submit(bio(4, 4, 1));
    assert_eq!(
        describe(&DeviceQueue::requests(&device(), effects.steps())),
        ["0+4", "4+4"]
    );
}

#[test]
fn a_task_that_sleeps_sends_its_plug_to_the_queue() {
    let mut effects = Effects::default();
    effects.push(Effect::PlugStart);
    effects.submit(bio(0, 4, 1));
    effects.wait();
    effects.submit(bio(4, 4, 1));
    effects.push(Effect::PlugFinish);
    assert_eq!(
        describe(&DeviceQueue::requests(&device(), effects.steps())),
        ["0+4", "4+4"]
    );
}

#[test]
fn the_flush_machinery_does_what_the_device_lacks() {
    let durable = BioFlags {
        preflush: true,
        fua: true,
        sync: true,
        ..BioFlags::default()
    };
    let cases: [(bool, bool, &[&str]); 3] = [
        (true, false, &["F", "0+4", "F"]),
        (true, true, &["F", "0+4"]),
        (false, false, &["0+4"]),
    ];
    for (has_write_cache, has_fua, expected) in cases {
        let limits = DeviceLimits {
            has_write_cache,
            has_fua,
            ..device()
        };
        let mut effects = Effects::default();
        effects.submit(Bio {
            flags: durable,
            ..bio(0, 4, 1)
        });
        effects.submit(Bio::flush());
        let mut requests = describe(&DeviceQueue::requests(&limits, effects.steps()));
        if has_write_cache {
            assert_eq!(requests.pop().as_deref(), Some("F"), "the empty flush");
        }
        assert_eq!(requests, expected);
    }
}

/// Data requests of an operation, each as offset in the file and length in KiB.
fn data_requests(stack: &Stack, effects: &Effects) -> Vec<String> {
    let requests = DeviceQueue::requests(stack.limits(), effects.steps());
    let data = requests.iter().filter_map(|request| match request.content {
        BioContent::Data { offset, .. } => {
            Some(format!("{}+{}", offset / 1024, request.bytes() / 1024))
        }
        _ => None,
    });
    data.collect()
}

#[test]
fn requests_of_a_long_write_end_where_its_mappings_end() {
    // Expectation 110: windows of 4 MiB in a file of 8, of 8 MiB in a larger one.
    let cases = [
        (
            8,
            "0+1280 1280+1280 2560+1280 3840+256 4096+1280 5376+1280 6656+1280 7936+256",
        ),
        (
            20,
            "0+1280 1280+1280 2560+1280 3840+1280 5120+1280 6400+1280 7680+512 8192+1280 9472+1280 \
             10752+1280 12032+1280 13312+1280 14592+1280 15872+512 16384+1280 17664+1280 18944+1280 \
             20224+256",
        ),
    ];
    for (mib, expected) in cases {
        let mut stack = ext4(V6_18, device(), "", "");
        prepare(&mut stack, &["open d f creat"]);
        run(&mut stack, &format!("pwrite d 0 {}", mib << 20));
        let effects = run(&mut stack, "fsync d");
        assert_eq!(
            data_requests(&stack, &effects).join(" "),
            expected,
            "{mib} MiB"
        );
    }
}

/// Runs of adjacent sectors of a file's data, in blocks, as reads of the whole file show them.
fn extents(stack: &mut Stack, path: &str, blocks: u64) -> Vec<u64> {
    run(stack, &format!("open x {path} direct"));
    let effects = run(stack, &format!("pread x 0 {}", blocks * 4096));
    run(stack, "close x");
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for bio in effects
        .bios()
        .filter(|bio| bio.operation == BioOperation::Read)
    {
        match runs.last_mut() {
            Some((end, length)) if *end == bio.sector => {
                *end = bio.end_sector();
                *length += bio.sectors / 8;
            }
            _ => runs.push((bio.end_sector(), bio.sectors / 8)),
        }
    }
    runs.iter().map(|(_, length)| *length).collect()
}

#[test]
fn two_growing_files_share_the_device_as_measured() {
    // Expectation 36: 64 writes of 64 KiB in turn.
    for version in [V6_1, V6_18] {
        for (is_synced, expected) in [
            (false, &[1024_u64][..]),
            (true, &[16, 16, 32, 64, 128, 256, 512][..]),
        ] {
            let mut stack = ext4(version, device(), "", "");
            prepare(&mut stack, &["open a a creat", "open b b creat"]);
            for index in 0..64 {
                for file in ["a", "b"] {
                    run(
                        &mut stack,
                        &format!("pwrite {file} {} 65536", index * 65536),
                    );
                    if is_synced {
                        run(&mut stack, &format!("fsync {file}"));
                    }
                }
            }
            run(&mut stack, "syncfs");
            for file in ["a", "b"] {
                assert_eq!(
                    extents(&mut stack, file, 1024),
                    expected,
                    "{file} {is_synced}"
                );
            }
        }
    }
}

#[test]
fn two_files_written_directly_alternate_and_then_get_windows() {
    // Expectation 121: 16 writes of 16 KiB in turn.
    let mut stack = ext4(V6_18, device(), "", "");
    prepare(
        &mut stack,
        &["open a a creat,direct", "open b b creat,direct"],
    );
    for index in 0..16 {
        for file in ["a", "b"] {
            run(
                &mut stack,
                &format!("pwrite {file} {} 16384", index * 16384),
            );
        }
    }
    assert_eq!(extents(&mut stack, "a", 64), [4, 4, 4, 4, 16, 32]);
}
