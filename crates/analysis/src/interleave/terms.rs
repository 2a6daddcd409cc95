//! Sources of interruptions in the interleave calculation, such as the clock, and their interrupts.

use super::follow::InterruptSource;
use super::inputs::{InterleaveInputs, SerialMethod};
use serde::Serialize;

/// Source of interruptions in the interleave calculation that can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptCost {
    /// Interrupts of the clock.
    Clock,
    /// Interrupts of serial lines for characters and buffers.
    Serial,
    /// Wake-ups of the reader of raw input at each character.
    RawInput,
}

impl InterruptCost {
    /// All sources of interruptions, in their order of precedence.
    pub const ALL: [Self; 3] = [Self::Clock, Self::Serial, Self::RawInput];

    /// Returns the name of the source of interruptions in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Serial => "serial",
            Self::RawInput => "raw_input",
        }
    }

    /// Returns the name of the source of interruptions in a sentence.
    pub fn label(self) -> &'static str {
        match self {
            Self::Clock => "the clock",
            Self::Serial => "the serial lines",
            Self::RawInput => "raw input",
        }
    }
}

/// Kind of an interrupt, such as a clock tick or a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// Tick of the clock.
    ClockTick,
    /// Character that arrives on a serial line.
    Character,
    /// Full buffer of characters from a serial line.
    Buffer,
    /// Wake-up of a serial line's reader at a character.
    WakeUp,
}

impl InterruptKind {
    /// Returns the source of interruptions that the kind of interrupt belongs to.
    pub fn cost(self) -> InterruptCost {
        match self {
            Self::ClockTick => InterruptCost::Clock,
            Self::Character | Self::Buffer => InterruptCost::Serial,
            Self::WakeUp => InterruptCost::RawInput,
        }
    }

    /// Returns the description of the interrupt for the user.
    pub fn label(self) -> &'static str {
        match self {
            Self::ClockTick => "clock tick",
            Self::Character => "character of a line",
            Self::Buffer => "buffer of a line",
            Self::WakeUp => "wake-up at a character",
        }
    }

    /// Returns the lattice coordinate for the phase of the interrupt on a line. Each interrupt has
    /// its own, whatever others there are. A reader is woken when a character arrives, and so
    /// shares the coordinate of the character's interrupt.
    fn lattice_dimension(self, line: u32) -> u32 {
        match self {
            Self::ClockTick => 0,
            Self::Character | Self::WakeUp => 1 + 2 * line,
            Self::Buffer => 2 + 2 * line,
        }
    }
}

/// Interruption of the service by one kind of interrupt, from one or more equal sources.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterruptionFigures {
    /// Kind of the interrupt, such as a clock tick.
    #[serde(rename = "interrupt")]
    pub kind: InterruptKind,
    /// Number of equal sources of the interrupt, each with a phase of its own.
    #[serde(rename = "sources")]
    pub source_count: u32,
    /// Time from one interrupt of a source to the next, in ms.
    pub period_ms: f64,
    /// Processor time of each interrupt in ms, at the processor's speed.
    pub cost_ms: f64,
    /// Share of the processor (0 to 1) that all sources take.
    pub processor_share: f64,
}

impl InterleaveInputs {
    /// Lists the sources of interruptions that are switched on.
    pub(super) fn list_interrupt_costs(&self) -> Vec<InterruptCost> {
        let raw = self.serial_input.and_then(|serial| serial.raw_wakeup_us);
        let on = |term: &InterruptCost| match term {
            InterruptCost::Clock => self.clock_interrupts.is_some(),
            InterruptCost::Serial => self.serial_input.is_some(),
            InterruptCost::RawInput => raw.is_some(),
        };
        InterruptCost::ALL.into_iter().filter(on).collect()
    }

    pub(super) fn list_interruptions(&self) -> Vec<InterruptionFigures> {
        let mut found = Vec::new();
        let mut add = |interrupt, sources: u32, period_ms: f64, measured_ms: f64| {
            let cost_ms = measured_ms / self.cpu_speed;
            found.push(InterruptionFigures {
                kind: interrupt,
                source_count: sources,
                period_ms,
                cost_ms,
                processor_share: f64::from(sources) * cost_ms / period_ms,
            });
        };
        if let Some(clock) = &self.clock_interrupts {
            add(
                InterruptKind::ClockTick,
                1,
                1e3 / clock.frequency_hz,
                clock.tick_ms,
            );
        }
        if let Some(serial) = &self.serial_input {
            let (lines, char_ms) = (serial.line_count, serial.char_ms());
            let chars = f64::from(serial.buffer_chars);
            let each_ms = serial.us_per_char / 1e3;
            let done_ms = serial.completion_us_per_char * chars / 1e3;
            if serial.method != SerialMethod::Dma {
                add(InterruptKind::Character, lines, char_ms, each_ms);
            }
            if serial.method != SerialMethod::Programmed {
                add(InterruptKind::Buffer, lines, char_ms * chars, done_ms);
            }
            if let Some(us) = serial.raw_wakeup_us {
                add(InterruptKind::WakeUp, lines, char_ms, us / 1e3);
            }
        }
        found
    }

    /// Returns the interrupt sources of the selected kinds, without those that take no time.
    pub(super) fn list_interrupt_sources(
        &self,
        kept: &dyn Fn(InterruptCost) -> bool,
    ) -> Vec<InterruptSource> {
        let mut sources: Vec<InterruptSource> = Vec::new();
        let counts = |one: &InterruptionFigures| kept(one.kind.cost()) && one.cost_ms > 0.0;
        for one in self.list_interruptions().into_iter().filter(counts) {
            for line in 0..one.source_count {
                let dimension = one.kind.lattice_dimension(line);
                match sources
                    .iter_mut()
                    .find(|has| has.lattice_dimension == dimension)
                {
                    Some(same) => same.cost_ms += one.cost_ms,
                    None => sources.push(InterruptSource {
                        period_ms: one.period_ms,
                        cost_ms: one.cost_ms,
                        lattice_dimension: dimension,
                        // The clock's level is above that of the disks, where
                        // the lines are.
                        waits_for_program: one.kind != InterruptKind::ClockTick,
                    }),
                }
            }
        }
        sources
    }
}
