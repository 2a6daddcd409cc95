//! Fuzz targets for option values: sizes, ranges and kinds of file systems.

use crate::{FuzzTarget, to_byte_inputs, to_text};
use diskperf_models::tune;
use diskperf_system::host::fresh::FreshSpec;
use diskperf_timeline::units::{MIB, format_size, parse_size};

/// Input for the option parsers: sizes, and values of `--over KEY=VALUES`.
pub(crate) const SIZES: FuzzTarget = FuzzTarget {
    name: "sizes",
    make_body: || Box::new(parse_sizes),
    make_seeds: size_seeds,
    keywords: &[
        "KiB",
        "KB",
        "K",
        "MiB",
        "GB",
        "T",
        "..",
        ":",
        ",",
        ".",
        "1e18",
        "0.1",
        "-",
        "+",
        "18446744073709551615",
    ],
};

/// Input for the option parser: values of `--fresh KIND:KEY=VALUE,...`.
pub(crate) const FRESH: FuzzTarget = FuzzTarget {
    name: "fresh",
    make_body: || Box::new(parse_fresh),
    make_seeds: fresh_seeds,
    keywords: &[
        "ext4",
        "xfs",
        "btrfs",
        "block_bytes=",
        "size=",
        "mkfs=",
        "mount=",
        ",",
        ":",
        "-O ",
        "=",
        "512M",
        "18446744073709551615",
    ],
};

fn parse_sizes(bytes: &[u8]) {
    let text = to_text(bytes);
    match parse_size(&text) {
        Ok(size) => assert!(!format_size(size).is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = tune::parse_values("filesystem.rotdelay_ms", &text);
}

fn size_seeds() -> Vec<Vec<u8>> {
    to_byte_inputs([
        "8M",
        "512K",
        "1.5GiB",
        "100 MB",
        "8kB",
        "0",
        "4096",
        "0..10:0.5",
        "4K,8K,64K",
        "1..100",
        "2K..2M:x2",
        "a,b",
    ])
}

fn parse_fresh(bytes: &[u8]) {
    match to_text(bytes).parse::<FreshSpec>() {
        Ok(spec) => {
            let _ = spec.image_bytes(MIB);
            let _ = spec.image_bytes(u64::MAX);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn fresh_seeds() -> Vec<Vec<u8>> {
    to_byte_inputs([
        "ext4",
        "ext4:block_bytes=1024,size=512M",
        "xfs:block_bytes=4096,mkfs=-m reflink=0",
        "btrfs:mount=compress=zstd",
        "ext2:mount=noatime,mount=nodiratime",
    ])
}
