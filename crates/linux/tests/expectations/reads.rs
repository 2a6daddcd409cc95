//! What buffered reads make the kernel read, as it was measured on two kernels.

use crate::notation::{core, device, ext4, prepare, reads, run};
use diskperf_linux::block::DeviceLimits;
use diskperf_linux::version::KernelVersion::{self, V6_1, V6_18};

/// Reads of one length from an offset on, and the windows that they begin with.
struct Case {
    name: &'static str,
    version: KernelVersion,
    read_ahead_kib: u32,
    offset_kib: u64,
    call_kib: u64,
    /// Distance from one call's offset to the next one's.
    stride_kib: i64,
    advice: Option<&'static str>,
    windows: &'static str,
}

const fn sequential(
    name: &'static str,
    version: KernelVersion,
    offset_kib: u64,
    call_kib: u64,
    windows: &'static str,
) -> Case {
    Case {
        name,
        version,
        read_ahead_kib: 128,
        offset_kib,
        call_kib,
        stride_kib: call_kib as i64,
        advice: None,
        windows,
    }
}

const CASES: &[Case] = &[
    sequential(
        "1",
        V6_18,
        0,
        4,
        "0+16 16+32 48+16 64+32 96+32 128+64 192+64 256+128 384+128",
    ),
    sequential(
        "1",
        V6_18,
        0,
        8,
        "0+16 16+32 48+16 64+32 96+32 128+64 192+64 256+128 384+128",
    ),
    sequential("2", V6_18, 0, 16, "0+32 32+64 96+96 192+64 256+128 384+128"),
    sequential(
        "3",
        V6_18,
        0,
        32,
        "0+64 64+128 192+128 320+64 384+128 512+128",
    ),
    sequential("4", V6_18, 0, 64, "0+128 128+128 256+128"),
    sequential("4", V6_18, 0, 128, "0+128 128+128 256+128"),
    sequential("5", V6_18, 0, 256, "0+256 256+256 512+256"),
    sequential(
        "148",
        V6_1,
        0,
        4,
        "0+16 16+32 48+64 112+128 240+128 368+128",
    ),
    sequential("149", V6_1, 0, 16, "0+32 32+64 96+128 224+128 352+128"),
    sequential("149", V6_1, 0, 32, "0+64 64+128 192+128 320+128"),
    sequential("149", V6_1, 0, 64, "0+128 128+128 256+128"),
    sequential(
        "7",
        V6_18,
        1024,
        4,
        "1024+4 1028+16 1044+28 1072+16 1088+32 1120+32 1152+64 1216+64 1280+128",
    ),
    sequential(
        "8",
        V6_18,
        1024,
        16,
        "1024+16 1040+32 1072+64 1136+80 1216+64 1280+128",
    ),
    sequential(
        "150",
        V6_1,
        1024,
        4,
        "1024+4 1028+16 1044+32 1076+64 1140+128 1268+128",
    ),
    sequential(
        "150",
        V6_1,
        1024,
        16,
        "1024+16 1040+32 1072+64 1136+128 1264+128",
    ),
    Case {
        read_ahead_kib: 512,
        ..sequential(
            "9",
            V6_18,
            0,
            4,
            "0+16 16+64 80+112 192+64 256+128 384+128 512+256 768+256 1024+512",
        )
    },
    Case {
        read_ahead_kib: 16,
        ..sequential("10", V6_18, 0, 4, "0+8 8+8 16+16 32+16 48+16")
    },
    Case {
        read_ahead_kib: 4,
        ..sequential("11", V6_18, 0, 4, "0+4 4+4 8+4 12+4")
    },
    Case {
        read_ahead_kib: 0,
        ..sequential("11", V6_18, 0, 16, "0+4 4+4 8+4 12+4 16+4")
    },
    Case {
        stride_kib: -4,
        ..sequential("13", V6_18, 400, 4, "400+4 396+4 392+4 388+4")
    },
    Case {
        stride_kib: -4,
        ..sequential("152", V6_1, 400, 4, "400+4 396+4 392+4 388+4")
    },
    Case {
        stride_kib: 8,
        ..sequential("14", V6_18, 8, 4, "8+4 16+16 32+16 48+16")
    },
    Case {
        stride_kib: 8,
        ..sequential("151", V6_1, 8, 4, "8+4 16+16 32+96 128+128")
    },
    Case {
        advice: Some("random"),
        ..sequential("15", V6_18, 0, 64, "0+64 64+64 128+64")
    },
    Case {
        advice: Some("random"),
        ..sequential("152", V6_1, 0, 64, "0+64 64+64 128+64")
    },
    Case {
        advice: Some("sequential"),
        ..sequential(
            "15",
            V6_18,
            0,
            4,
            "0+16 16+32 48+16 64+32 96+32 128+64 192+64 256+128 384+128 512+256 768+256",
        )
    },
    Case {
        advice: Some("sequential"),
        ..sequential(
            "152",
            V6_1,
            0,
            4,
            "0+16 16+32 48+64 112+128 240+256 496+256",
        )
    },
];

/// Stack with a clean file of 4 MiB of which no page is cached, and the file opened.
fn with_cold_file(version: KernelVersion, read_ahead_kib: u32) -> diskperf_linux::stack::Stack {
    let limits = DeviceLimits {
        read_ahead_kib,
        ..device()
    };
    let mut stack = ext4(version, limits, "", "");
    prepare(
        &mut stack,
        &["open d f creat", "pwrite d 0 4194304", "fsync d"],
    );
    run(&mut stack, "fadvise d dontneed 0 0");
    run(&mut stack, "close d");
    run(&mut stack, "open d f -");
    stack
}

#[test]
fn reads_make_the_measured_windows() {
    for case in CASES {
        let mut stack = with_cold_file(case.version, case.read_ahead_kib);
        if let Some(advice) = case.advice {
            run(&mut stack, &format!("fadvise d {advice} 0 0"));
        }
        let expected: Vec<&str> = case.windows.split(' ').collect();
        let mut made: Vec<String> = Vec::new();
        let mut offset = case.offset_kib as i64;
        while made.len() < expected.len() && (0..4096).contains(&offset) {
            let text = format!("pread d {} {}", offset * 1024, case.call_kib * 1024);
            made.extend(reads(&run(&mut stack, &text)));
            offset += case.stride_kib;
        }
        made.truncate(expected.len());
        assert_eq!(
            made,
            expected,
            "{} on {}: {} KiB calls from {}",
            case.name,
            case.version.name(),
            case.call_kib,
            case.offset_kib
        );
    }
}

#[test]
fn random_reads_read_just_their_bytes() {
    for call_kib in [4, 16, 256] {
        let mut stack = with_cold_file(V6_18, 128);
        for offset_kib in [2048, 512, 3072, 1024] {
            let effects = run(
                &mut stack,
                &format!("pread d {} {}", offset_kib * 1024, call_kib * 1024),
            );
            assert_eq!(reads(&effects), [format!("{offset_kib}+{call_kib}")]);
        }
    }
}

#[test]
fn an_advised_read_is_one_request_long_at_most() {
    let mut stack = with_cold_file(V6_18, 128);
    let effects = run(&mut stack, "fadvise d willneed 0 4194304");
    assert_eq!(reads(&effects), ["0+1280"]);
    let mut stack = with_cold_file(V6_18, 128);
    let effects = run(&mut stack, "fadvise d willneed 0 1048576");
    assert_eq!(reads(&effects), ["0+1024"]);
}

#[test]
fn a_hole_and_a_short_file_are_read_as_far_as_there_is_data() {
    let mut stack = ext4(V6_18, device(), "", "");
    prepare(
        &mut stack,
        &[
            "open d f creat",
            "pwrite d 0 10000",
            "open h h creat",
            "ftruncate h 65536",
        ],
    );
    run(&mut stack, "fadvise d dontneed 0 0");
    assert_eq!(reads(&run(&mut stack, "pread d 0 4096")), ["0+12"]);
    assert!(reads(&run(&mut stack, "pread h 0 65536")).is_empty());
}

#[test]
fn a_page_written_in_part_is_read_first() {
    for version in [V6_1, V6_18] {
        let mut stack = with_cold_file(version, 128);
        assert_eq!(reads(&run(&mut stack, "pwrite d 409600 100")), ["400+4"]);
        assert_eq!(reads(&run(&mut stack, "pwrite d 819200 6000")), ["804+4"]);
        let effects = run(&mut stack, "fdatasync d");
        assert_eq!(core(&stack, &effects), "W f 400+4, W f 800+8, F");
    }
}

#[test]
fn a_direct_read_writes_the_dirty_pages_of_its_range_first() {
    let mut stack = with_cold_file(V6_18, 128);
    run(&mut stack, "pwrite d 0 4096");
    run(&mut stack, "pwrite d 1048576 4096");
    run(&mut stack, "open e f direct");
    let effects = run(&mut stack, "pread e 0 65536");
    assert_eq!(core(&stack, &effects), "W f 0+4");
    assert_eq!(reads(&effects), ["0+64"]);
}

#[test]
fn two_streams_of_one_descriptor_grow_their_windows_alike() {
    // Expectation 20, as far as it is explained.
    let mut stack = with_cold_file(V6_18, 128);
    let mut windows: [Vec<String>; 2] = Default::default();
    for index in 0..16 {
        for (stream, start) in [1024, 3072].into_iter().enumerate() {
            let offset = (start + index * 4) * 1024;
            windows[stream].extend(reads(&run(&mut stack, &format!("pread d {offset} 4096"))));
        }
    }
    assert_eq!(
        windows[0][..5],
        ["1024+4", "1028+4", "1032+12", "1044+12", "1056+32"]
    );
    assert_eq!(
        windows[1][..5],
        ["3072+4", "3076+4", "3080+12", "3092+12", "3104+32"]
    );
}
