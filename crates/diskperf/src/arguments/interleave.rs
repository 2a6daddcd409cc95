//! The options of `diskperf calculate interleave`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_analysis::interleave::SerialMethod;
use std::path::PathBuf;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct InterleaveArguments {
    /// A drive of the catalogue (see `diskperf list drives`), of which the first cylinder counts;
    /// --rpm, --sectors-per-track, --spare-sectors-per-track and --sector-bytes override its values
    #[arg(long, value_name = "NAME")]
    pub(crate) drive: Option<String>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR", requires = "drive")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Revolutions per minute [default: 3600]
    #[arg(long, value_name = "RPM")]
    pub(crate) rpm: Option<f64>,
    /// Sectors on a track [default: 17]
    #[arg(long, value_name = "N")]
    pub(crate) sectors_per_track: Option<u32>,
    /// Spare sector slots on a track, which hold no data [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) spare_sectors_per_track: Option<u32>,
    /// Bytes in a sector [default: 512]
    #[arg(long, value_name = "BYTES")]
    pub(crate) sector_bytes: Option<u32>,
    /// Latency from the controller's interrupt to the driver, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) interrupt_latency_ms: f64,
    /// Interrupt processing of the driver, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) driver_ms: f64,
    /// Start of a transfer by the driver, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) transfer_start_ms: f64,
    /// Rescheduling and context switch, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) reschedule_ms: f64,
    /// Kernel processes and interrupts of higher priority, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) higher_priority_ms: f64,
    /// Read system call, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) system_call_ms: f64,
    /// Processing of a sector by the program, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) application_ms: f64,
    /// Speed of the processor relative to the measured machine; divides all processor times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) cpu_speed: f64,
    /// Include clock interrupts at this rate [default: 60 with --clock-ms]
    #[arg(long, value_name = "HZ")]
    pub(crate) clock_hz: Option<f64>,
    /// Duration of a clock tick, callouts included, in ms [default: the time of 2 sectors, the middle
    /// of Bass's 1 to 3, with --clock-hz]
    #[arg(long, value_name = "MS")]
    pub(crate) clock_ms: Option<f64>,
    /// Include the interrupts of this number of active serial lines
    #[arg(long, value_name = "N")]
    pub(crate) serial_lines: Option<u32>,
    /// Bits per second on each line, ten per character
    #[arg(
        long,
        value_name = "BAUD",
        default_value_t = 9600,
        requires = "serial_lines"
    )]
    pub(crate) baud: u32,
    /// Transfer method of characters to memory
    #[arg(
        long,
        value_enum,
        default_value = "pseudo-dma",
        requires = "serial_lines"
    )]
    pub(crate) serial: SerialKind,
    /// Duration of the interrupt for a character, in µs [default: the middle of Bass's ranges: 1000
    /// programmed, 100 with pseudo-DMA]
    #[arg(long, value_name = "US", requires = "serial_lines")]
    pub(crate) serial_us_per_char: Option<f64>,
    /// Time per character to process a full buffer, in µs [default: 225, the middle of
    /// Bass's 50 to 400]
    #[arg(long, value_name = "US", requires = "serial_lines")]
    pub(crate) serial_done_us_per_char: Option<f64>,
    /// Characters in a buffer [default: 24, the middle of Bass's 16 to 32]
    #[arg(long, value_name = "N", requires = "serial_lines")]
    pub(crate) serial_buffer_chars: Option<u32>,
    /// Raw input on the lines: every character wakes its reader at interrupt level
    #[arg(long, requires = "serial_lines")]
    pub(crate) raw_input: bool,
    /// Duration of the wake-up for raw input, in µs (Bass gives no number)
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
    /// Requests that the controller queues
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) outstanding: u32,
    /// Show the factors up to this one, and its loss relative to the best
    #[arg(long, value_name = "N")]
    pub(crate) factor: Option<u32>,
    /// Remove the limits on the calculation and the model
    #[arg(long)]
    pub(crate) no_budget: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SerialKind {
    /// One interrupt per character, with a handler in C
    Programmed,
    /// One short interrupt per character, and one per buffer
    PseudoDma,
    /// One interrupt per buffer
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
