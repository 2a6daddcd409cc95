//! Tables of what ext4 makes of single calls, as it was measured on two kernels.

use diskperf_linux::version::KernelVersion;

pub(crate) const BOTH: &[KernelVersion] = &[KernelVersion::V6_1, KernelVersion::V6_18];
const OLD: &[KernelVersion] = &[KernelVersion::V6_1];
const NEW: &[KernelVersion] = &[KernelVersion::V6_18];

/// Operations and what each must make; those without an entry are not looked at.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) versions: &'static [KernelVersion],
    /// Options of mke2fs and of mount.
    pub(crate) make: &'static str,
    pub(crate) mount: &'static str,
    pub(crate) before: &'static [&'static str],
    pub(crate) steps: &'static [(&'static str, &'static str)],
}

pub(crate) const COMMIT: &str = "F, J 4 f";
pub(crate) const FILE: &[&str] = &["open d f creat", "pwrite d 0 4096"];

/// Case on a file system with defaults, on both kernels.
const fn case(
    name: &'static str,
    before: &'static [&'static str],
    steps: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        name,
        versions: BOTH,
        make: "",
        mount: "",
        before,
        steps,
    }
}

/// The same with a mount option: append, overwrite with fdatasync, then fsync.
const fn option(
    versions: &'static [KernelVersion],
    make: &'static str,
    mount: &'static str,
    steps: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        name: mount,
        versions,
        make,
        mount,
        before: FILE,
        steps,
    }
}

const fn only(versions: &'static [KernelVersion], case: Case) -> Case {
    Case { versions, ..case }
}

pub(crate) const SINGLE_CALLS: &[Case] = &[
    case(
        "21 append",
        FILE,
        &[("pwrite d 4096 4096", ""), ("fsync d", "W f 4+4, J 16, C")],
    ),
    case(
        "22 overwrite",
        FILE,
        &[("pwrite d 0 4096", ""), ("fsync d", "W f 0+4, J 8, C")],
    ),
    case(
        "23, 24, 104 overwrite with fdatasync, then fsync twice",
        FILE,
        &[
            ("pwrite d 0 4096", ""),
            ("fdatasync d", "W f 0+4, F"),
            ("fsync d", "J 8, C"),
            ("fsync d", "F"),
        ],
    ),
    case(
        "25, 103 creations",
        FILE,
        &[
            ("open e g creat", ""),
            ("fsync e", "J 20, C"),
            ("open h h creat", ""),
            ("pwrite h 0 4096", ""),
            ("fsync h", "W h 0+4, J 24, C"),
            ("open i i creat", ""),
            ("open k k creat", ""),
            ("open l l creat", ""),
            ("pwrite l 0 4096", ""),
            ("fsync l", "W l 0+4, J 28, C"),
        ],
    ),
    case(
        "30, 125 direct I/O",
        &["open d f creat,direct", "pwrite d 0 65536"],
        &[
            ("pwrite d 0 4096", "W f 0+4"),
            ("fdatasync d", "F"),
            ("pwrite d 65536 4096", "W f 64+4"),
            ("fdatasync d", "J 20, C"),
        ],
    ),
    case(
        "31 into fallocated space",
        &["open d f creat", "fallocate d extend 0 65536"],
        &[
            ("pwrite d 0 4096", ""),
            ("fdatasync d", "W f 0+4, J 8, C"),
            ("fdatasync d", "F"),
        ],
    ),
    case(
        "33 dirty pages go out in the order of the file",
        &["open d f creat", "pwrite d 0 8388608"],
        &[
            ("pwrite d 819200 4096", ""),
            ("pwrite d 102400 4096", ""),
            ("pwrite d 106496 4096", ""),
            ("pwrite d 4096000 4096", ""),
            ("pwrite d 307200 4096", ""),
            ("pwrite d 110592 4096", ""),
            ("pwrite d 2048000 4096", ""),
            (
                "fdatasync d",
                "W f 100+12, W f 300+4, W f 800+4, W f 2000+4, W f 4000+4, F",
            ),
        ],
    ),
    case(
        "126 append of 512 bytes in a block",
        &["open d f creat", "pwrite d 0 512"],
        &[("pwrite d 512 512", ""), ("fdatasync d", "W f 0+4, J 8, C")],
    ),
    case(
        "128 first files of a fresh root",
        &[],
        &[
            ("open d f creat", ""),
            ("pwrite d 0 4096", ""),
            ("fsync d", "W f 0+4, J 28, C"),
            ("open e g creat", ""),
            ("pwrite e 0 4096", ""),
            ("fsync e", "W g 0+4, J 24, C"),
        ],
    ),
    only(
        OLD,
        case(
            "129 directory and a file in it",
            &[],
            &[
                ("mkdir a", ""),
                ("fsyncdir a", "J 28, C"),
                ("open d f creat", ""),
                ("fsync d", "J 24, C"),
                ("open e a/g creat", ""),
                ("fsync e", "J 20, C"),
                ("rename a/g a/h", ""),
                ("fsyncdir a", "J 12, C"),
                ("unlink a/h", ""),
                ("fsyncdir a", "J 16, C"),
            ],
        ),
    ),
    only(
        NEW,
        case(
            "129 directory in another group than its parent",
            &["open d f creat", "pwrite d 0 4096", "mkdir z"],
            &[
                ("mkdir a", ""),
                ("fsyncdir a", "J 32, C"),
                ("open e a/g creat", ""),
                ("fsync e", "J 24, C"),
                ("rename a/g a/h", ""),
                ("fsyncdir a", "J 16, C"),
                ("unlink a/h", ""),
                ("fsyncdir a", "J 20, C"),
            ],
        ),
    ),
    case(
        "130 replacement of a file by a new one",
        FILE,
        &[
            ("open e t creat", ""),
            ("pwrite e 0 4096", ""),
            ("fsync e", "W t 0+4, J 24, C"),
            ("close e", ""),
            ("close d", ""),
            ("rename t f", ""),
            ("fsyncdir .", "J 28, C"),
            ("rename f n", ""),
            ("fsyncdir .", "J 12, C"),
        ],
    ),
    case(
        "131 truncation, then extension",
        &["open d f creat", "pwrite d 0 1048576"],
        &[
            ("ftruncate d 4096", ""),
            ("fsync d", "J 20, C"),
            ("ftruncate d 8192", ""),
            ("fdatasync d", "J 8, C"),
        ],
    ),
    case(
        "132 removal of a file of 1 MiB",
        &["open d f creat", "pwrite d 0 1048576", "close d"],
        &[
            ("unlink f", ""),
            ("fsyncdir .", "J 28, C"),
            ("fsyncdir .", ""),
        ],
    ),
    case(
        "133 renaming of an open file",
        FILE,
        &[("rename f g", ""), ("fsync d", "J 12, C")],
    ),
    case(
        "135 a truncated file is written when it is closed",
        &["open d f creat", "pwrite d 0 4096", "close d"],
        &[
            ("open d f trunc", ""),
            ("pwrite d 0 8192", ""),
            ("close d", "W f 0+8"),
        ],
    ),
    case(
        "136 fsync of a clean file, and after a read",
        FILE,
        &[
            ("fsync d", "F"),
            ("pread d 0 4096", ""),
            ("fsync d", "J 8, C"),
            ("fsyncdir .", ""),
        ],
    ),
    only(
        OLD,
        case(
            "138 part of a write",
            &["open d f creat"],
            &[
                ("pwrite d 0 65536", ""),
                ("sfr d 0 32768 write", "W f 0+32"),
            ],
        ),
    ),
    only(
        NEW,
        case(
            "138 part of a write, by folios",
            &["open d f creat"],
            &[
                ("pwrite d 0 65536", ""),
                ("sfr d 0 32768 write", "W f 0+64"),
            ],
        ),
    ),
];

const APPEND: (&str, &str) = ("pwrite d 4096 4096", "");
const OVERWRITE: (&str, &str) = ("pwrite d 0 4096", "");

pub(crate) const OPTIONS: &[Case] = &[
    option(
        BOTH,
        "",
        "data=writeback",
        &[
            APPEND,
            ("fsync d", "W f 4+4, J 16, C"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, F"),
            ("fsync d", "J 8, C"),
        ],
    ),
    option(
        NEW,
        "",
        "data=journal",
        &[
            APPEND,
            ("fsync d", "J 20, C, W f 4+4, F"),
            OVERWRITE,
            ("fdatasync d", "J 12, C, W f 0+4, F"),
            ("fsync d", "F"),
        ],
    ),
    option(
        OLD,
        "",
        "data=journal",
        &[
            // The data of the preparation goes home with the next fsync.
            ("fsync d", "W f 0+4"),
            APPEND,
            ("fsync d", "J 20, C"),
            OVERWRITE,
            ("fdatasync d", "W f 4+4, J 12, C"),
            ("fsync d", "W f 0+4"),
            ("fsync d", ""),
        ],
    ),
    option(
        BOTH,
        "",
        "nobarrier",
        &[
            APPEND,
            ("fsync d", "W f 4+4, J 20"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4"),
            ("fsync d", "J 12"),
        ],
    ),
    option(
        BOTH,
        "",
        "journal_async_commit,data=writeback",
        &[
            APPEND,
            ("fsync d", "W f 4+4, J 20, F"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, F"),
            ("fsync d", "J 12, F"),
        ],
    ),
    option(
        BOTH,
        "-O fast_commit",
        "",
        &[
            APPEND,
            ("fsync d", "W f 4+4, C"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, C"),
            ("fsync d", "C"),
        ],
    ),
    option(
        NEW,
        "-O ^has_journal",
        "",
        &[
            APPEND,
            ("fsync d", "W f 4+4, F"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, F"),
            ("fsync d", "F"),
        ],
    ),
    option(
        OLD,
        "-O ^has_journal",
        "",
        &[
            APPEND,
            ("fsync d", "W f 4+4, F"),
            ("syncfs", "F"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4"),
            ("fsync d", "F"),
        ],
    ),
    option(
        BOTH,
        "",
        "sync",
        &[
            ("pwrite d 4096 4096", "W f 4+4, J 16, C"),
            ("pwrite d 0 4096", "W f 0+4, F"),
            ("fsync d", "J 8, C"),
            ("open e g creat", "J 20, C"),
            ("rename g h", "J 12, C"),
            ("pwrite e 0 4096", "W g 0+4, J 16, C"),
            ("close e", ""),
            ("unlink h", "J 16, C, J 24, C"),
        ],
    ),
    option(
        BOTH,
        "",
        "dirsync",
        &[
            APPEND,
            ("fsync d", "W f 4+4, J 16, C"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, F"),
            ("open e g creat", "J 20, C"),
            ("rename g h", "J 12, C"),
        ],
    ),
    option(
        BOTH,
        "-b 1024",
        "",
        &[
            APPEND,
            ("fsync d", "W f 4+4, J 4, F, J 1 f"),
            OVERWRITE,
            ("fdatasync d", "W f 0+4, F"),
            ("fsync d", "J 2, F, J 1 f"),
        ],
    ),
];

/// What fsync of one file does to others: B has dirty appended data, N is new and dirty.
pub(crate) const OTHER_FILES: &[Case] = &[
    case(
        "122 ordered: only the file's data goes out",
        BYSTANDERS,
        &[
            ("pwrite b 4096 262144", ""),
            ("open n N creat", ""),
            ("pwrite n 0 131072", ""),
            ("pwrite a 0 4096", ""),
            ("fdatasync a", "W A 0+4, F"),
            ("pwrite a 4096 4096", ""),
            ("fdatasync a", "W A 4+4, J 24, C"),
        ],
    ),
    Case {
        name: "124 nodelalloc: the commit writes the new data of all files",
        versions: BOTH,
        make: "",
        mount: "nodelalloc",
        before: BYSTANDERS,
        steps: &[
            ("pwrite b 4096 262144", ""),
            ("open n N creat", ""),
            ("pwrite n 0 131072", ""),
            ("pwrite a 4096 4096", ""),
            ("fdatasync a", "W A 4+4, W B 4+256, W N 0+128, J 24, C"),
        ],
    },
];

const BYSTANDERS: &[&str] = &[
    "open a A creat",
    "pwrite a 0 4096",
    "open b B creat",
    "pwrite b 0 4096",
];
