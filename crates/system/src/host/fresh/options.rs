//! Options of mkfs and mount that a user may give. They name no device, file or directory: diskperf
//! makes mkfs write without asking, so mkfs would overwrite a device named here without warning.

use super::FreshKind;
use rustix::mount::MountFlags;

/// Kind of value that an mkfs option accepts.
#[derive(Clone, Copy)]
enum OptionValue {
    NoValue,
    AnyWord,
    /// Value in the form `KEY` or `KEY=VALUE`, or several with commas, with one of these keys.
    KeyedValues(&'static [&'static str]),
}

/// Option of mkfs that a user may give.
struct MkfsOption {
    letter: char,
    /// Long name without its hyphens; empty if the option has none.
    long_name: &'static str,
    value: OptionValue,
}

impl MkfsOption {
    const fn new(letter: char, long_name: &'static str, value: OptionValue) -> Self {
        Self {
            letter,
            long_name,
            value,
        }
    }
}

const EXT_MKFS_OPTIONS: &[MkfsOption] = &[
    MkfsOption::new('b', "", OptionValue::AnyWord),
    MkfsOption::new('C', "", OptionValue::AnyWord),
    MkfsOption::new('D', "", OptionValue::NoValue),
    MkfsOption::new(
        'E',
        "",
        OptionValue::KeyedValues(&[
            "assume_storage_prezeroed",
            "desc_size",
            "discard",
            "encoding",
            "encoding_flags",
            "hash_seed",
            "lazy_itable_init",
            "lazy_journal_init",
            "mmp_update_interval",
            "no_copy_xattrs",
            "nodiscard",
            "num_backup_sb",
            "orphan_file_size",
            "packed_meta_blocks",
            "quotatype",
            "resize",
            "root_owner",
            "stride",
            "stripe_width",
        ]),
    ),
    MkfsOption::new('e', "", OptionValue::AnyWord),
    MkfsOption::new('G', "", OptionValue::AnyWord),
    MkfsOption::new('g', "", OptionValue::AnyWord),
    MkfsOption::new('I', "", OptionValue::AnyWord),
    MkfsOption::new('i', "", OptionValue::AnyWord),
    MkfsOption::new(
        'J',
        "",
        OptionValue::KeyedValues(&["fast_commit_size", "location", "size"]),
    ),
    MkfsOption::new('j', "", OptionValue::NoValue),
    MkfsOption::new('L', "", OptionValue::AnyWord),
    MkfsOption::new('m', "", OptionValue::AnyWord),
    MkfsOption::new('N', "", OptionValue::AnyWord),
    MkfsOption::new('O', "", OptionValue::AnyWord),
    MkfsOption::new('o', "", OptionValue::AnyWord),
    MkfsOption::new('q', "", OptionValue::NoValue),
    MkfsOption::new('r', "", OptionValue::AnyWord),
    MkfsOption::new('T', "", OptionValue::AnyWord),
    MkfsOption::new('U', "", OptionValue::AnyWord),
    MkfsOption::new('v', "", OptionValue::NoValue),
];

const XFS_MKFS_OPTIONS: &[MkfsOption] = &[
    MkfsOption::new('b', "", OptionValue::KeyedValues(&["size"])),
    MkfsOption::new(
        'd',
        "",
        OptionValue::KeyedValues(&[
            "agcount",
            "agsize",
            "cowextsize",
            "extszinherit",
            "noalign",
            "projinherit",
            "sectsize",
            "su",
            "sunit",
            "sw",
            "swidth",
        ]),
    ),
    MkfsOption::new(
        'i',
        "",
        OptionValue::KeyedValues(&[
            "attr",
            "exchange",
            "maxpct",
            "nrext64",
            "perblock",
            "projid32bit",
            "size",
            "sparse",
        ]),
    ),
    MkfsOption::new('K', "", OptionValue::NoValue),
    MkfsOption::new('L', "", OptionValue::AnyWord),
    MkfsOption::new(
        'l',
        "",
        OptionValue::KeyedValues(&[
            "agnum",
            "internal",
            "lazy-count",
            "sectsize",
            "size",
            "su",
            "sunit",
            "version",
        ]),
    ),
    MkfsOption::new(
        'm',
        "",
        OptionValue::KeyedValues(&[
            "autofsck",
            "bigtime",
            "crc",
            "finobt",
            "inobtcount",
            "metadir",
            "reflink",
            "rmapbt",
            "uuid",
        ]),
    ),
    MkfsOption::new(
        'n',
        "",
        OptionValue::KeyedValues(&["ftype", "parent", "size", "version"]),
    ),
    MkfsOption::new('q', "", OptionValue::NoValue),
    MkfsOption::new('s', "", OptionValue::KeyedValues(&["size"])),
];

const BTRFS_MKFS_OPTIONS: &[MkfsOption] = &[
    MkfsOption::new('d', "data", OptionValue::AnyWord),
    MkfsOption::new('K', "nodiscard", OptionValue::NoValue),
    MkfsOption::new('L', "label", OptionValue::AnyWord),
    MkfsOption::new('M', "mixed", OptionValue::NoValue),
    MkfsOption::new('m', "metadata", OptionValue::AnyWord),
    MkfsOption::new('n', "nodesize", OptionValue::AnyWord),
    MkfsOption::new('O', "features", OptionValue::AnyWord),
    MkfsOption::new('q', "quiet", OptionValue::NoValue),
    MkfsOption::new('R', "runtime-features", OptionValue::AnyWord),
    MkfsOption::new('s', "sectorsize", OptionValue::AnyWord),
    MkfsOption::new('U', "uuid", OptionValue::AnyWord),
    MkfsOption::new('v', "verbose", OptionValue::NoValue),
];

/// Effect of a mount option that is valid for every file system.
#[derive(Clone, Copy)]
enum MountOptionEffect {
    /// The file system itself reads the option.
    ReadByFilesystem,
    /// The kernel has a flag for the option.
    Sets(MountFlags),
    /// The kernel has a flag for the opposite, or nothing at all for what it does by default.
    Clears(MountFlags),
}

/// Mount options that are valid for every file system.
const COMMON_MOUNT_OPTIONS: &[(&str, MountOptionEffect)] = {
    use MountOptionEffect::{Clears, ReadByFilesystem, Sets};
    &[
        ("async", Clears(MountFlags::SYNCHRONOUS)),
        ("atime", Clears(MountFlags::NOATIME)),
        ("defaults", Clears(MountFlags::empty())),
        ("dev", Clears(MountFlags::NODEV)),
        ("diratime", Clears(MountFlags::NODIRATIME)),
        ("dirsync", Sets(MountFlags::DIRSYNC)),
        ("discard", ReadByFilesystem),
        ("exec", Clears(MountFlags::NOEXEC)),
        ("lazytime", Sets(MountFlags::LAZYTIME)),
        ("noatime", Sets(MountFlags::NOATIME)),
        ("nodev", Sets(MountFlags::NODEV)),
        ("nodiratime", Sets(MountFlags::NODIRATIME)),
        ("nodiscard", ReadByFilesystem),
        ("noexec", Sets(MountFlags::NOEXEC)),
        ("nolazytime", Clears(MountFlags::LAZYTIME)),
        ("norelatime", Clears(MountFlags::RELATIME)),
        ("nostrictatime", Clears(MountFlags::STRICTATIME)),
        ("nosuid", Sets(MountFlags::NOSUID)),
        ("relatime", Sets(MountFlags::RELATIME)),
        ("rw", Clears(MountFlags::RDONLY)),
        ("strictatime", Sets(MountFlags::STRICTATIME)),
        ("suid", Clears(MountFlags::NOSUID)),
        ("sync", Sets(MountFlags::SYNCHRONOUS)),
    ]
};

const EXT_MOUNT_OPTIONS: &[&str] = &[
    "acl",
    "auto_da_alloc",
    "barrier",
    "block_validity",
    "bsddf",
    "bsdgroups",
    "commit",
    "data",
    "data_err",
    "dax",
    "delalloc",
    "dioread_lock",
    "dioread_nolock",
    "errors",
    "grpid",
    "init_itable",
    "inode_readahead_blks",
    "journal_async_commit",
    "journal_checksum",
    "journal_ioprio",
    "max_batch_time",
    "max_dir_size_kb",
    "mb_optimize_scan",
    "min_batch_time",
    "minixdf",
    "no_mbcache",
    "no_prefetch_block_bitmaps",
    "noacl",
    "noauto_da_alloc",
    "nobarrier",
    "noblock_validity",
    "nodelalloc",
    "nodioread_nolock",
    "nogrpid",
    "noinit_itable",
    "nojournal_checksum",
    "noquota",
    "nouser_xattr",
    "oldalloc",
    "orlov",
    "prefetch_block_bitmaps",
    "resgid",
    "resuid",
    "stripe",
    "sysvgroups",
    "user_xattr",
];

const XFS_MOUNT_OPTIONS: &[&str] = &[
    "allocsize",
    "attr2",
    "dax",
    "filestreams",
    "grpid",
    "ikeep",
    "inode32",
    "inode64",
    "largeio",
    "lifetime",
    "logbsize",
    "logbufs",
    "noalign",
    "noattr2",
    "nogrpid",
    "noikeep",
    "nolargeio",
    "nolifetime",
    "noquota",
    "nouuid",
    "sunit",
    "swalloc",
    "swidth",
    "wsync",
];

const BTRFS_MOUNT_OPTIONS: &[&str] = &[
    "acl",
    "autodefrag",
    "barrier",
    "clear_cache",
    "commit",
    "compress",
    "compress-force",
    "datacow",
    "datasum",
    "enospc_debug",
    "fatal_errors",
    "flushoncommit",
    "max_inline",
    "metadata_ratio",
    "noacl",
    "noautodefrag",
    "nobarrier",
    "nodatacow",
    "nodatasum",
    "noenospc_debug",
    "noflushoncommit",
    "nospace_cache",
    "nossd",
    "nossd_spread",
    "notreelog",
    "space_cache",
    "ssd",
    "ssd_spread",
    "thread_pool",
    "treelog",
    "user_subvol_rm_allowed",
];

/// Rejected option of mkfs or mount, with the accepted alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DisallowedOption {
    /// Rejected option as the user wrote it.
    pub(super) option_text: String,
    /// Options of mkfs or mount that are accepted instead.
    pub(super) allowed_options: String,
}

impl DisallowedOption {
    fn new(option: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            option_text: option.into(),
            allowed_options: allowed.into(),
        }
    }
}

/// Checks additional arguments of mkfs. They must be options with their values, because mkfs takes
/// any other word for another device.
pub(super) fn check_mkfs(kind: FreshKind, arguments: &[String]) -> Result<(), DisallowedOption> {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let Some((option, attached)) = find_option(kind, word) else {
            return Err(DisallowedOption::new(word, list_options(kind)));
        };
        let (takes, name) = (option.value, format_option(option));
        let value = match (takes, attached) {
            (OptionValue::NoValue, None) => continue,
            (OptionValue::NoValue, Some(_)) => {
                let allowed = format!("{name} by itself");
                return Err(DisallowedOption::new(word, allowed));
            }
            (OptionValue::AnyWord | OptionValue::KeyedValues(_), Some(value)) => value,
            (OptionValue::AnyWord | OptionValue::KeyedValues(_), None) => {
                words.next().unwrap_or("")
            }
        };
        let whole = match attached {
            Some(_) => word.to_owned(),
            None => format!("{word} {value}"),
        };
        match takes {
            OptionValue::NoValue => {}
            OptionValue::AnyWord if is_plain_word(value) => {}
            OptionValue::AnyWord => {
                let allowed = format!("{name} with a number or a word, without `/`");
                return Err(DisallowedOption::new(whole, allowed));
            }
            OptionValue::KeyedValues(keys)
                if value.split(',').all(|part| has_allowed_key(keys, part)) => {}
            OptionValue::KeyedValues(keys) => {
                let allowed = format!("{name} with {}", keys.join(", "));
                return Err(DisallowedOption::new(whole, allowed));
            }
        }
    }
    Ok(())
}

/// Checks that a user may give this mount option for a fresh file system.
pub(super) fn check_mount(kind: FreshKind, option: &str) -> Result<(), DisallowedOption> {
    let own = mount_options(kind).iter().copied();
    let common = COMMON_MOUNT_OPTIONS.iter().map(|(name, _)| *name);
    let allowed: Vec<&str> = own.chain(common).collect();
    match option
        .split(',')
        .all(|part| has_allowed_key(&allowed, part))
    {
        true => Ok(()),
        false => Err(DisallowedOption::new(option, allowed.join(", "))),
    }
}

/// Mount options as mount(2) takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::host) struct MountArguments {
    pub(in crate::host) flags: MountFlags,
    /// Options that the file system reads, separated by commas.
    pub(in crate::host) data: String,
}

/// Converts mount options as mount(8) does. A later option takes the place of an earlier one.
pub(in crate::host) fn mount_arguments(options: &[&str]) -> MountArguments {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in options.iter().flat_map(|option| option.split(',')) {
        let mut common = COMMON_MOUNT_OPTIONS.iter();
        match common.find(|(name, _)| *name == option) {
            Some((_, MountOptionEffect::Sets(flag))) => flags |= *flag,
            Some((_, MountOptionEffect::Clears(flag))) => flags &= !*flag,
            Some((_, MountOptionEffect::ReadByFilesystem)) | None => data.push(option),
        }
    }
    MountArguments {
        flags,
        data: data.join(","),
    }
}

fn mkfs_options(kind: FreshKind) -> &'static [MkfsOption] {
    match kind {
        FreshKind::Ext2 | FreshKind::Ext4 => EXT_MKFS_OPTIONS,
        FreshKind::Xfs => XFS_MKFS_OPTIONS,
        FreshKind::Btrfs => BTRFS_MKFS_OPTIONS,
    }
}

fn mount_options(kind: FreshKind) -> &'static [&'static str] {
    match kind {
        FreshKind::Ext2 | FreshKind::Ext4 => EXT_MOUNT_OPTIONS,
        FreshKind::Xfs => XFS_MOUNT_OPTIONS,
        FreshKind::Btrfs => BTRFS_MOUNT_OPTIONS,
    }
}

/// Returns the mkfs option that a word stands for, with the value in the same word if any: `-b`,
/// `-b1024`, `--label` or `--label=a`. Combined letters and abbreviated long names are not
/// accepted.
fn find_option(kind: FreshKind, word: &str) -> Option<(&'static MkfsOption, Option<&str>)> {
    let options = mkfs_options(kind);
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let option = options.iter().find(|option| option.long_name == name)?;
        return (!name.is_empty()).then_some((option, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let option = options.iter().find(|option| option.letter == letter)?;
    let value = letters.as_str();
    Some((option, (!value.is_empty()).then_some(value)))
}

/// Reports whether `KEY` or `KEY=VALUE` has one of these keys and a plain value.
fn has_allowed_key(keys: &[&str], part: &str) -> bool {
    match part.split_once('=') {
        Some((key, value)) => keys.contains(&key) && is_plain_word(value),
        None => keys.contains(&part),
    }
}

/// Reports whether a value is a number or a word that cannot be a path. A word that begins with `-`
/// would be the next option to some versions of mkfs.
fn is_plain_word(value: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.:+^-".contains(letter);
    !value.is_empty() && !value.starts_with('-') && value.chars().all(plain)
}

fn format_option(option: &MkfsOption) -> String {
    let letter = option.letter;
    match option.long_name {
        "" => format!("-{letter}"),
        long => format!("-{letter} (--{long})"),
    }
}

fn list_options(kind: FreshKind) -> String {
    let options: Vec<String> = mkfs_options(kind).iter().map(format_option).collect();
    options.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mkfs(kind: FreshKind, line: &str) -> Result<(), DisallowedOption> {
        let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        check_mkfs(kind, &words)
    }

    #[test]
    fn options_with_numbers_and_words_are_passed_on() {
        for (kind, line) in [
            (FreshKind::Ext4, "-m 0 -i 65536 -O ^has_journal -L scratch"),
            (FreshKind::Ext4, "-m0 -E stride=16 -J size=16"),
            (FreshKind::Ext2, "-E stride=16,stripe_width=64 -v"),
            (
                FreshKind::Xfs,
                "-m reflink=0 -d agcount=2 -lsize=64m -i size=512",
            ),
            (FreshKind::Xfs, "-l internal"),
            (FreshKind::Btrfs, "-d single --metadata dup --label=a -M"),
        ] {
            assert_eq!(mkfs(kind, line), Ok(()), "{kind} {line}");
        }
        for (kind, option) in [
            (FreshKind::Ext4, "noatime"),
            (FreshKind::Ext4, "data=journal"),
            (FreshKind::Xfs, "logbufs=8"),
            (FreshKind::Btrfs, "compress=zstd:3"),
        ] {
            assert_eq!(check_mount(kind, option), Ok(()), "{kind} {option}");
        }
    }

    #[test]
    fn flags_of_the_kernel_and_options_of_the_file_system_are_told_apart() {
        let [noatime, sync] = [MountFlags::NOATIME, MountFlags::SYNCHRONOUS];
        for (options, flags, data) in [
            (&[][..], MountFlags::empty(), ""),
            (&["noatime", "data=journal"], noatime, "data=journal"),
            (&["noatime,sync", "discard"], noatime | sync, "discard"),
            (&["sync", "commit=1", "nouuid"], sync, "commit=1,nouuid"),
            (&["noatime,sync", "atime,defaults,rw"], sync, ""),
        ] {
            let data = data.to_owned();
            let expected = MountArguments { flags, data };
            assert_eq!(mount_arguments(options), expected, "{options:?}");
        }
    }

    #[test]
    fn what_may_lead_to_a_device_or_a_file_is_not() {
        use FreshKind::{Btrfs, Ext2, Ext4, Xfs};
        for (kind, line) in [
            (Btrfs, "/dev/loop2"),
            (Btrfs, "loop2"),
            (Btrfs, "-- loop2"),
            (Btrfs, "-M loop2"),
            (Btrfs, "-d single ../dev/loop2"),
            (Btrfs, "--rootdir /etc"),
            (Btrfs, "--root=/etc"),
            (Btrfs, "-r etc"),
            (Btrfs, "--lab a"),
            (Btrfs, "-qK"),
            (Btrfs, "--nodiscard=a"),
            (Btrfs, "-L"),
            (Btrfs, "-L -d"),
            (Xfs, "-l logdev=/dev/loop2"),
            (Xfs, "-llogdev=loop2"),
            (Xfs, "-l size=64m,logdev=loop2"),
            (Xfs, "-l internal,name=x"),
            (Xfs, "-r rtdev=/proc/self/fd/3"),
            (Xfs, "-d name=loop2"),
            (Xfs, "-d agcount=/dev/loop2"),
            (Xfs, "-p proto"),
            (Xfs, "-c options=file"),
            (Xfs, "-Kl logdev=loop2"),
            (Ext4, "-J device=/dev/loop2"),
            (Ext4, "-Jdevice=UUID=12"),
            (Ext4, "-J size=4,device=loop2"),
            (Ext4, "-d /etc"),
            (Ext4, "-l badblocks"),
            (Ext4, "-z undo"),
            (Ext4, "-E offset=1048576"),
            (Ext4, "-L /dev/loop2"),
            (Ext2, "4096"),
        ] {
            assert!(mkfs(kind, line).is_err(), "{kind} {line}");
        }
        for (kind, option) in [
            (Ext4, "journal_path=/dev/loop2"),
            (Ext4, "journal_dev=0x702"),
            (Ext4, "usrjquota=file"),
            (Ext4, "loop=loop2"),
            (Ext4, "bind"),
            (Ext4, "remount"),
            (Ext4, "X-mount.mkdir"),
            (Ext4, "noatime,loop"),
            (Xfs, "logdev=loop2"),
            (Xfs, "rtdev=../dev/loop2"),
            (Btrfs, "device=/dev/loop2"),
            (Btrfs, "subvol=a/b"),
            (Ext4, ""),
        ] {
            assert!(check_mount(kind, option).is_err(), "{kind} {option}");
        }
    }
}
