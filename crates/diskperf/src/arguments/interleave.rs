//! The options of `diskperf calculate interleave`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_laboratory::analysis::interleave::SerialMethod;
use std::path::PathBuf;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct InterleaveArguments {
    /// A drive of the catalogue (see `diskperf list drives`), its first cylinder; --rpm,
    /// --sectors-per-track, --spare-sectors-per-track and --sector-bytes change it
    #[arg(long, value_name = "NAME")]
    pub(crate) drive: Option<String>,
    /// Lay this folder over the catalogue
    #[arg(long, value_name = "DIR", requires = "drive")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Revolutions per minute [default: 3600]
    #[arg(long, value_name = "RPM")]
    pub(crate) rpm: Option<f64>,
    /// Sectors on a track [default: 17]
    #[arg(long, value_name = "N")]
    pub(crate) sectors_per_track: Option<u32>,
    /// Slots on a track that hold no data [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) spare_sectors_per_track: Option<u32>,
    /// Bytes in a sector [default: 512]
    #[arg(long, value_name = "BYTES")]
    pub(crate) sector_bytes: Option<u32>,
    /// From the controller's interrupt to the driver, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) interrupt_latency_ms: f64,
    /// The driver's interrupt processing, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) driver_ms: f64,
    /// The driver's start of a transfer, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) transfer_start_ms: f64,
    /// Reschedule and context switch, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) reschedule_ms: f64,
    /// Kernel processes and interrupts that always come first, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) higher_priority_ms: f64,
    /// The read system call, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) system_call_ms: f64,
    /// What the program does with a sector, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) application_ms: f64,
    /// Divide every time of the processor by this; 1 is the machine that was measured
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) cpu_speed: f64,
    /// Count clock interrupts, so many in a second [default: 60 where --clock-ms is given]
    #[arg(long, value_name = "HZ")]
    pub(crate) clock_hz: Option<f64>,
    /// What a clock tick takes, callouts included, in ms [default: 2 sectors' time, the middle of
    /// Bass's 1 to 3, where --clock-hz is given]
    #[arg(long, value_name = "MS")]
    pub(crate) clock_ms: Option<f64>,
    /// Count the interrupts of so many active serial lines
    #[arg(long, value_name = "N")]
    pub(crate) serial_lines: Option<u32>,
    /// Bits in a second on each line, ten for a character
    #[arg(
        long,
        value_name = "BAUD",
        default_value_t = 9600,
        requires = "serial_lines"
    )]
    pub(crate) baud: u32,
    /// How characters get to memory
    #[arg(
        long,
        value_enum,
        default_value = "pseudo-dma",
        requires = "serial_lines"
    )]
    pub(crate) serial: SerialKind,
    /// What the interrupt of a character takes, in us [default: the middle of Bass's ranges: 1000
    /// programmed, 100 with pseudo-DMA]
    #[arg(long, value_name = "US", requires = "serial_lines")]
    pub(crate) serial_us_per_char: Option<f64>,
    /// What a full buffer takes for each of its characters, in us [default: 225, the middle of
    /// Bass's 50 to 400]
    #[arg(long, value_name = "US", requires = "serial_lines")]
    pub(crate) serial_done_us_per_char: Option<f64>,
    /// Characters in a buffer [default: 24, the middle of Bass's 16 to 32]
    #[arg(long, value_name = "N", requires = "serial_lines")]
    pub(crate) serial_buffer_chars: Option<u32>,
    /// The lines carry raw input: every character wakes its reader at interrupt level
    #[arg(long, requires = "serial_lines")]
    pub(crate) raw_input: bool,
    /// What that wake-up takes, in us (Bass gives no number)
    #[arg(
        long,
        value_name = "US",
        default_value_t = 200.0,
        requires = "raw_input"
    )]
    pub(crate) wakeup_us: f64,
    /// Average two consecutive service times
    #[arg(long)]
    pub(crate) read_ahead: bool,
    /// Requests that the controller holds at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) outstanding: u32,
    /// Show the factors up to this one, and what it costs against the best
    #[arg(long, value_name = "N")]
    pub(crate) factor: Option<u32>,
    /// Calculate and model whatever the case takes
    #[arg(long)]
    pub(crate) no_budget: bool,
    /// How the calculation is printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SerialKind {
    /// An interrupt for each character, served in C
    Programmed,
    /// A short interrupt for each character, and one for each buffer
    PseudoDma,
    /// One interrupt for each buffer
    Dma,
}

impl From<SerialKind> for SerialMethod {
    fn from(kind: SerialKind) -> Self {
        match kind {
            SerialKind::Programmed => Self::Programmed,
            SerialKind::PseudoDma => Self::PseudoDma,
            SerialKind::Dma => Self::Dma,
        }
    }
}
