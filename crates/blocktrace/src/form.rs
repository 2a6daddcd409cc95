//! The forms of traces that there are.

use std::fmt;
use std::str::FromStr;

/// A form of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// fio's iolog, version 2.
    FioIolog2,
    /// fio's iolog, version 3, with times.
    FioIolog3,
    /// What `blkparse` prints.
    Blkparse,
    /// The binary files of `blktrace`, versions 7 and 8, one file of one processor.
    Blktrace,
    /// The kernel's block events as text, as `trace-cmd report` and tracefs have it.
    Ftrace,
    /// Microsoft Research Cambridge, 2007.
    Msr,
    /// The Storage Performance Council's, of the UMass repository.
    Spc,
    /// Systor 2017: VDI at a LUN each.
    Systor17,
    /// Alibaba 2020.
    Alibaba,
    /// Tencent 2018.
    Tencent,
    /// CloudPhysics, binary, versions 1 and 2 of vscsiStats.
    VscsiBinary,
    /// CloudPhysics, as text.
    VscsiCsv,
    /// DiskSim's ASCII form, in ms.
    DiskSim,
    /// DiskSim's closed-loop `validate` form, whose pauses follow their requests.
    Validate,
    /// The same, whose pauses come before their requests.
    ValidateBefore,
    /// Hewlett-Packard's SRT 1.3.
    Srt,
    /// MQSim's, in whole units of time.
    MqSim,
    /// Comma-separated values whose columns are named.
    Csv,
    /// diskperf's own: issue and completion of each request, in blocks with checksums.
    Diskperf,
    /// The table of `biosnoop`, of bcc and its libbpf tools.
    Biosnoop,
}

impl Form {
    /// All forms.
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

    /// The forms that can be written as well.
    pub const WRITTEN: [Self; 10] = [
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

    /// The name by which it is asked for.
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

    /// Whether the beginning of a trace can tell it: columns of values have no names, and
    /// pauses do not say which request they belong to.
    pub(crate) const fn is_told_by_its_beginning(self) -> bool {
        !matches!(self, Self::Csv | Self::ValidateBefore)
    }

    /// Whether its records are bytes and not lines.
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

/// What a form without a unit of its own counts its times in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Picoseconds.
    Picoseconds,
}

impl TimeUnit {
    /// Digits of a decimal number that are left of nanoseconds' point; negative of
    /// picoseconds.
    pub(crate) const fn digits_of_ns(self) -> i32 {
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
