//! Operations, machines and options that a kernel refuses.

use diskperf_linux::block::DeviceLimits;
use diskperf_linux::ext4::Ext4Options;
use diskperf_linux::operation::FileOperation;
use diskperf_linux::sequence::read_operation;
use diskperf_linux::stack::{FileSystemOptions, Stack, StackError};
use diskperf_linux::version::{Host, KernelVersion};
use diskperf_linux::xfs::XfsOptions;
use serde_json::{Value, json};

const HOST: Host = Host {
    version: KernelVersion::V6_18,
    ticks_per_second: 250,
    processors: 2,
};

fn device() -> DeviceLimits {
    DeviceLimits::loop_device(512 << 20)
}

fn operation(value: &Value) -> FileOperation {
    read_operation(value).expect("it is an operation")
}

fn ext4(make: &str, mount: &str) -> FileSystemOptions {
    let make: Vec<String> = make.split_whitespace().map(str::to_owned).collect();
    FileSystemOptions::Ext4(Ext4Options::parse(&make, mount).expect("it is modelled"))
}

fn xfs(make: &str, mount: &str) -> FileSystemOptions {
    let make: Vec<String> = make.split_whitespace().map(str::to_owned).collect();
    FileSystemOptions::Xfs(XfsOptions::parse(&make, mount).expect("it is modelled"))
}

fn errno(error: &StackError) -> &'static str {
    match error {
        StackError::Refused { errno, .. } => errno,
        other => panic!("{other}"),
    }
}

#[test]
fn calls_fail_with_the_error_number_of_the_kernel_and_change_nothing() {
    let long = "n".repeat(256);
    let calls = [
        (json!(["pwrite", "reader", 0, 4096]), "EBADF"),
        (json!(["ftruncate", "reader", 0]), "EBADF"),
        (json!(["fallocate", "reader", "", 0, 4096]), "EBADF"),
        (json!(["mkdir", "d"]), "EEXIST"),
        (json!(["mkdir", "f"]), "EEXIST"),
        (json!(["mkdir", ""]), "EINVAL"),
        (json!(["unlink", "d"]), "EISDIR"),
        (json!(["open", "writer", "f", ["creat"]]), "EBUSY"),
        (json!(["open", "new", "d", ["creat"]]), "EISDIR"),
        (json!(["open", "new", "f/x", ["creat"]]), "ENOTDIR"),
        (json!(["open", "new", long, ["creat"]]), "ENAMETOOLONG"),
        (json!(["rename", "f", long]), "ENAMETOOLONG"),
        (json!(["rename", "d", "f"]), "ENOTDIR"),
        (json!(["rename", "f", "d"]), "EISDIR"),
        (json!(["rename", "d", "d/inside"]), "EINVAL"),
        (json!(["pwrite", "direct", 0, 100]), "EINVAL"),
        (json!(["pread", "direct", 100, 512]), "EINVAL"),
        (json!(["fallocate", "writer", "", 0, 0]), "EINVAL"),
        (
            json!(["pwrite", "writer", (1_u64 << 63) - 1, 4096]),
            "EFBIG",
        ),
        (json!(["pwrite", "writer", u64::MAX, 4096]), "EFBIG"),
        (json!(["pread", "writer", u64::MAX - 1, 4096]), "EFBIG"),
        (json!(["ftruncate", "writer", 1_u64 << 63]), "EFBIG"),
        (
            json!(["fallocate", "writer", "keep", 1_u64 << 63, 1]),
            "EFBIG",
        ),
        (json!(["sfr", "writer", u64::MAX, 2, ["write"]]), "EFBIG"),
        (json!(["sleep", 1e30]), "EINVAL"),
    ];
    for options in [ext4("", ""), ext4("-b 1024", ""), xfs("", "")] {
        let mut stack = Stack::new(HOST, device(), options).expect("it is modelled");
        for call in [
            json!(["open", "writer", "f", ["creat"]]),
            json!(["open", "reader", "f", ["rdonly"]]),
            json!(["open", "direct", "f", ["direct"]]),
            json!(["mkdir", "d"]),
            json!(["syncfs"]),
        ] {
            stack.run(&operation(&call)).expect("it runs");
        }
        for (call, expected) in &calls {
            let error = stack.run(&operation(call)).expect_err("it is refused");
            assert_eq!(errno(&error), *expected, "{call}: {error}");
        }
        let effects = stack.run(&operation(&json!(["syncfs"]))).expect("it runs");
        assert!(
            effects.bios().all(|bio| bio.sectors == 0),
            "a refused call changed something"
        );
    }
}

#[test]
fn empty_transfers_do_nothing() {
    for options in [ext4("", ""), xfs("", "")] {
        let mut stack = Stack::new(HOST, device(), options).expect("it is modelled");
        let open = json!(["open", "f", "f", ["creat"]]);
        stack.run(&operation(&open)).expect("it runs");
        for call in [json!(["pwrite", "f", 0, 0]), json!(["pread", "f", 0, 0])] {
            let effects = stack.run(&operation(&call)).expect("it runs");
            assert!(effects.steps().is_empty(), "{call}");
        }
    }
}

#[test]
fn mounts_that_the_kernel_refuses_are_refused() {
    for options in [
        ext4("", "journal_async_commit"),
        ext4("-O ^has_journal", "data=journal"),
        ext4("-O ^has_journal", "data=writeback"),
        ext4("-O ^has_journal", "journal_async_commit"),
        xfs("-l su=3", ""),
        xfs("-l su=1m", ""),
        xfs("-l su=64k", "logbsize=32k"),
    ] {
        let error = Stack::new(HOST, device(), options).expect_err("it is refused");
        assert_eq!(errno(&error), "EINVAL", "{options:?}");
    }
    let small = DeviceLimits::loop_device(1 << 20);
    Stack::new(HOST, small, ext4("", "data=journal")).expect_err("mke2fs makes no journal");
    Stack::new(HOST, small, ext4("", "")).expect("it needs no journal");
    for options in [
        ext4("", "journal_async_commit,data=writeback"),
        xfs("-l su=32k", "logbsize=32k"),
    ] {
        Stack::new(HOST, device(), options).expect("the kernel takes it");
    }
}

#[test]
fn machines_and_devices_that_cannot_be_are_refused() {
    let without_ticks = Host {
        ticks_per_second: 0,
        ..HOST
    };
    let without_processors = Host {
        processors: 0,
        ..HOST
    };
    let without_length = DeviceLimits {
        max_sectors_kib: 0,
        ..device()
    };
    let without_segments = DeviceLimits {
        segments_max: 0,
        ..device()
    };
    for (host, limits) in [
        (without_ticks, device()),
        (without_processors, device()),
        (HOST, without_length),
        (HOST, without_segments),
    ] {
        for options in [ext4("", ""), xfs("", "")] {
            let error = Stack::new(host, limits, options).expect_err("it is refused");
            assert_eq!(errno(&error), "EINVAL");
        }
    }
}
