//! Options of mkfs.xfs and of mount that are modelled.

use crate::sequence::UnsupportedOption;

/// Options of mkfs.xfs that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsMakeOptions {
    /// Bytes of a sector: 512 or 4096 (`-s size=`).
    pub sector_bytes: u32,
    /// Stripe unit of the log in bytes (`-l su=`). `None`: log writes end at sectors.
    pub log_stripe_bytes: Option<u32>,
    /// Whether blocks may be shared (`-m reflink=`).
    pub has_reflink: bool,
}

impl Default for XfsMakeOptions {
    fn default() -> Self {
        Self {
            sector_bytes: 512,
            log_stripe_bytes: None,
            has_reflink: true,
        }
    }
}

/// Options of mount that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsMountOptions {
    /// Whether changes of names are synchronous (`wsync`).
    pub is_wsync: bool,
    /// Whether freed extents are discarded (`discard`).
    pub discards: bool,
    /// Length of speculative preallocation in bytes (`allocsize=`). `None`: it grows with the file.
    pub allocation_bytes: Option<u64>,
    /// Bytes of a log buffer (`logbsize=`). `None`: 32 KiB, or the log's stripe unit if larger.
    pub log_buffer_bytes: Option<u32>,
    /// Whether reads change the time of access, as `relatime` says (`noatime`).
    pub has_access_times: bool,
    /// Whether time stamps stay in memory (`lazytime`).
    pub is_lazy_time: bool,
}

impl Default for XfsMountOptions {
    fn default() -> Self {
        Self {
            is_wsync: false,
            discards: false,
            allocation_bytes: None,
            log_buffer_bytes: None,
            has_access_times: true,
            is_lazy_time: false,
        }
    }
}

/// Options of an XFS file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XfsOptions {
    /// Options that mkfs.xfs was given.
    pub make: XfsMakeOptions,
    /// Options that mount was given.
    pub mount: XfsMountOptions,
}

impl XfsOptions {
    /// Reads the arguments of mkfs.xfs and the comma-separated options of mount.
    ///
    /// # Errors
    /// If an option is not modelled.
    pub fn parse(make: &[String], mount: &str) -> Result<Self, UnsupportedOption> {
        let make = parse_make(make)?;
        let mount = parse_mount(mount)?;
        Ok(Self { make, mount })
    }
}

fn parse_make(arguments: &[String]) -> Result<XfsMakeOptions, UnsupportedOption> {
    let mut options = XfsMakeOptions::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().map_or("", String::as_str);
        match (word.as_str(), value) {
            ("-s", "size=512") => options.sector_bytes = 512,
            ("-s", "size=4096") => options.sector_bytes = 4096,
            ("-m", "reflink=0") => options.has_reflink = false,
            ("-m", "reflink=1") => options.has_reflink = true,
            ("-l", stripe) if stripe.strip_prefix("su=").and_then(parse_bytes).is_some() => {
                options.log_stripe_bytes = stripe
                    .strip_prefix("su=")
                    .and_then(parse_bytes)
                    .and_then(|bytes| u32::try_from(bytes).ok());
            }
            _ => {
                return Err(UnsupportedOption {
                    program: "mkfs.xfs",
                    option: format!("{word} {value}").trim_end().to_owned(),
                    remedy: "use -s size=, -l su= or -m reflink=",
                });
            }
        }
    }
    Ok(options)
}

fn parse_mount(text: &str) -> Result<XfsMountOptions, UnsupportedOption> {
    let mut options = XfsMountOptions::default();
    for word in text
        .split(',')
        .filter(|word| !word.is_empty() && *word != "defaults")
    {
        match word {
            "wsync" => options.is_wsync = true,
            "discard" => options.discards = true,
            "noatime" => options.has_access_times = false,
            "relatime" => options.has_access_times = true,
            "lazytime" => options.is_lazy_time = true,
            _ => read_mount_size(word, &mut options)?,
        }
    }
    Ok(options)
}

/// Reads an option of mount that has a number of bytes: a power of two.
fn read_mount_size(word: &str, options: &mut XfsMountOptions) -> Result<(), UnsupportedOption> {
    let size_of = |key: &str, range: std::ops::RangeInclusive<u64>| {
        let bytes = word.strip_prefix(key).and_then(parse_bytes)?;
        (bytes.is_power_of_two() && range.contains(&bytes)).then_some(bytes)
    };
    if let Some(bytes) = size_of("allocsize=", 64 << 10..=1 << 30) {
        options.allocation_bytes = Some(bytes);
    } else if let Some(bytes) = size_of("logbsize=", 16 << 10..=256 << 10) {
        options.log_buffer_bytes = u32::try_from(bytes).ok();
    } else {
        return Err(UnsupportedOption {
            program: "mount",
            option: word.to_owned(),
            remedy: "use wsync, discard, noatime, lazytime, allocsize= or logbsize=",
        });
    }
    Ok(())
}

/// Reads a number of bytes with `k` or `m` behind it.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1024 * 1024),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
