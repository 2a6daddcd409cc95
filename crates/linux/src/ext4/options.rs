//! Options of mke2fs and of mount that are modelled.

use crate::sequence::UnsupportedOption;

/// Journaling of file data (`data=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataMode {
    /// New data is written before the commit that makes it reachable.
    #[default]
    Ordered,
    /// Data goes through the journal.
    Journal,
    /// Data is written at any time.
    Writeback,
}

/// Options of mke2fs that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext4MakeOptions {
    /// Bytes of a block: 1024, 2048 or 4096 (`-b`). `None`: 1024 below 512 MiB, else 4096.
    pub block_bytes: Option<u32>,
    /// Whether there is a journal (`-O ^has_journal`).
    pub has_journal: bool,
    /// Whether commits of single files may be short (`-O fast_commit`).
    pub has_fast_commit: bool,
}

impl Ext4MakeOptions {
    /// Returns the bytes of a block on a device of `device_bytes`.
    #[must_use]
    pub fn block_bytes_on(&self, device_bytes: u64) -> u64 {
        let default = if device_bytes < 512 << 20 { 1024 } else { 4096 };
        self.block_bytes.map_or(default, u64::from)
    }
}

impl Default for Ext4MakeOptions {
    fn default() -> Self {
        Self {
            block_bytes: None,
            has_journal: true,
            has_fast_commit: false,
        }
    }
}

/// Options of mount that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext4MountOptions {
    /// Journaling of file data.
    pub data: DataMode,
    /// Whether commits flush the device's write cache (`nobarrier`).
    pub has_barriers: bool,
    /// Whether blocks are allocated at writeback (`nodelalloc`).
    pub has_delayed_allocation: bool,
    /// Whether freed blocks are discarded after the commit (`discard`).
    pub discards: bool,
    /// Whether each call is synchronous (`sync`).
    pub is_sync: bool,
    /// Whether changes of directories are synchronous (`dirsync`).
    pub is_directory_sync: bool,
    /// Whether time stamps stay in memory (`lazytime`).
    pub is_lazy_time: bool,
    /// Whether reads change the time of access, as `relatime` says (`noatime`).
    pub has_access_times: bool,
    /// Whether the commit block joins the other blocks of the commit (`journal_async_commit`).
    pub is_async_commit: bool,
    /// Age at which a transaction is committed, in seconds (`commit=`).
    pub commit_seconds: u32,
}

impl Ext4MountOptions {
    /// Whether the kernel refuses the options without a journal.
    #[must_use]
    pub fn needs_journal(&self) -> bool {
        self.data != DataMode::Ordered || self.is_async_commit
    }
}

impl Default for Ext4MountOptions {
    fn default() -> Self {
        Self {
            data: DataMode::Ordered,
            has_barriers: true,
            has_delayed_allocation: true,
            discards: false,
            is_sync: false,
            is_directory_sync: false,
            is_lazy_time: false,
            has_access_times: true,
            is_async_commit: false,
            commit_seconds: 5,
        }
    }
}

/// Options of an ext4 file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ext4Options {
    /// Options that mke2fs was given.
    pub make: Ext4MakeOptions,
    /// Options that mount was given.
    pub mount: Ext4MountOptions,
}

impl Ext4Options {
    /// Reads the arguments of mke2fs and the comma-separated options of mount.
    ///
    /// # Errors
    /// If an option is not modelled.
    pub fn parse(make: &[String], mount: &str) -> Result<Self, UnsupportedOption> {
        let make = parse_make(make)?;
        let mount = parse_mount(mount)?;
        Ok(Self { make, mount })
    }
}

fn parse_make(arguments: &[String]) -> Result<Ext4MakeOptions, UnsupportedOption> {
    let mut options = Ext4MakeOptions::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().map_or("", String::as_str);
        match (word.as_str(), value) {
            ("-b", "1024") => options.block_bytes = Some(1024),
            ("-b", "2048") => options.block_bytes = Some(2048),
            ("-b", "4096") => options.block_bytes = Some(4096),
            ("-O", "fast_commit") => options.has_fast_commit = true,
            ("-O", "^has_journal") => options.has_journal = false,
            _ => {
                return Err(UnsupportedOption {
                    program: "mke2fs",
                    option: format!("{word} {value}").trim_end().to_owned(),
                    remedy: "use -b 1024, -b 2048, -b 4096, -O fast_commit or -O ^has_journal",
                });
            }
        }
    }
    Ok(options)
}

fn parse_mount(text: &str) -> Result<Ext4MountOptions, UnsupportedOption> {
    let mut options = Ext4MountOptions::default();
    for word in text
        .split(',')
        .filter(|word| !word.is_empty() && *word != "defaults")
    {
        match word {
            "data=ordered" => options.data = DataMode::Ordered,
            "data=journal" => options.data = DataMode::Journal,
            "data=writeback" => options.data = DataMode::Writeback,
            "barrier" => options.has_barriers = true,
            "nobarrier" => options.has_barriers = false,
            "delalloc" => options.has_delayed_allocation = true,
            "nodelalloc" => options.has_delayed_allocation = false,
            "discard" => options.discards = true,
            "sync" => options.is_sync = true,
            "dirsync" => options.is_directory_sync = true,
            "lazytime" => options.is_lazy_time = true,
            "noatime" => options.has_access_times = false,
            "relatime" => options.has_access_times = true,
            "journal_async_commit" => options.is_async_commit = true,
            _ => match word
                .strip_prefix("commit=")
                .and_then(|seconds| seconds.parse().ok())
            {
                Some(seconds) => options.commit_seconds = seconds,
                None => {
                    return Err(UnsupportedOption {
                        program: "mount",
                        option: word.to_owned(),
                        remedy: "use data=, barrier, delalloc, discard, sync, dirsync, lazytime, \
                                 noatime, journal_async_commit or commit=",
                    });
                }
            },
        }
    }
    Ok(options)
}
