//! Formats of block traces.

use std::fmt;
use std::str::FromStr;

/// Format of a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// fio's iolog, version 2.
    FioIolog2,
    /// fio's iolog, version 3, which has times.
    FioIolog3,
    /// Text output of `blkparse`.
    Blkparse,
    /// Binary output of `blktrace`, versions 7 and 8, with one file for each CPU.
    Blktrace,
    /// Block events of the Linux kernel as text, as printed by `trace-cmd report` and tracefs.
    Ftrace,
    /// Traces of Microsoft Research Cambridge, 2007.
    Msr,
    /// Traces of the Storage Performance Council, from the UMass repository.
    Spc,
    /// Traces of Systor 2017: virtual desktops, with one LUN each.
    Systor17,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// Tencent's block traces of 2018.
    Tencent,
    /// CloudPhysics' binary traces, versions 1 and 2 of vscsiStats.
    VscsiBinary,
    /// CloudPhysics' traces as text.
    VscsiCsv,
    /// DiskSim's ASCII format, with times in milliseconds.
    DiskSim,
    /// DiskSim's closed-loop `validate` format, with each pause after its request.
    Validate,
    /// DiskSim's closed-loop `validate` format, with each pause before its request.
    ValidateBefore,
    /// Hewlett-Packard's SRT 1.3 format.
    Srt,
    /// MQSim's format, with times in a whole number of units.
    MqSim,
    /// Comma-separated values with named columns.
    Csv,
    /// Native format of diskperf: issue and completion of each request, in blocks with checksums.
    Diskperf,
    /// Table of `biosnoop`, from bcc or its libbpf tools.
    Biosnoop,
}

impl Form {
    /// All trace formats of this crate.
    pub const ALL: [Self; 20] = [
        Self::FioIolog2,
        Self::FioIolog3,
        Self::Blkparse,
        Self::Blktrace,
        Self::Ftrace,
        Self::Msr,
        Self::Spc,
        Self::Systor17,
        Self::Alibaba,
        Self::Tencent,
        Self::VscsiBinary,
        Self::VscsiCsv,
        Self::DiskSim,
        Self::Validate,
        Self::ValidateBefore,
        Self::Srt,
        Self::MqSim,
        Self::Csv,
        Self::Diskperf,
        Self::Biosnoop,
    ];

    /// Trace formats that can also be written.
    pub const WRITABLE: [Self; 10] = [
        Self::FioIolog2,
        Self::FioIolog3,
        Self::Msr,
        Self::Spc,
        Self::Systor17,
        Self::Alibaba,
        Self::DiskSim,
        Self::Validate,
        Self::Csv,
        Self::Diskperf,
    ];

    /// Returns the name of the format, as `--form` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FioIolog2 => "fio-iolog-2",
            Self::FioIolog3 => "fio-iolog-3",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::Ftrace => "ftrace",
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Systor17 => "systor17",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::VscsiBinary => "vscsi-binary",
            Self::VscsiCsv => "vscsi-csv",
            Self::DiskSim => "disksim",
            Self::Validate => "validate",
            Self::ValidateBefore => "validate-before",
            Self::Srt => "srt",
            Self::MqSim => "mqsim",
            Self::Csv => "csv",
            Self::Diskperf => "diskperf",
            Self::Biosnoop => "biosnoop",
        }
    }

    /// Reports whether the beginning of a trace identifies the format. It does not for unnamed
    /// columns of values, nor for pauses that may belong to either neighbouring request.
    pub(crate) const fn has_signature(self) -> bool {
        !matches!(self, Self::Csv | Self::ValidateBefore)
    }

    /// Reports whether the format consists of binary records instead of lines.
    pub const fn is_binary(self) -> bool {
        matches!(
            self,
            Self::Diskperf | Self::Blktrace | Self::VscsiBinary | Self::Srt
        )
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|form| form.name()).collect();
            format!("there is no form `{name}`; there are {}", names.join(", "))
        })
    }
}

/// Unit of the times in a format that does not define one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Times that count seconds.
    Seconds,
    /// Times that count milliseconds.
    Milliseconds,
    /// Times that count microseconds.
    Microseconds,
    /// Times that count nanoseconds.
    Nanoseconds,
    /// Times that count picoseconds.
    Picoseconds,
}

impl TimeUnit {
    /// Returns the power of ten that converts the unit to nanoseconds. It is negative for
    /// picoseconds.
    pub(crate) const fn nanosecond_digits(self) -> i32 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
            Self::Picoseconds => -3,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "s" => Self::Seconds,
            "ms" => Self::Milliseconds,
            "us" => Self::Microseconds,
            "ns" => Self::Nanoseconds,
            "ps" => Self::Picoseconds,
            _ => {
                return Err(format!(
                    "`{name}` is no unit of time; there are s, ms, us, ns, ps"
                ));
            }
        })
    }
}
