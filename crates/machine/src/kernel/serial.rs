//! Serial lines that receive characters continuously and load the processor with interrupts (Speck
//! and Bass 1984).

use super::computer::Computer;
use crate::event::Event;
use diskperf_sim::{CpuId, Level, Streams, Time};
use std::cell::Cell;

/// Interrupt level of terminal interfaces, the same as that of the disks.
const TTY_LEVEL: Level = super::process::BIO_LEVEL;

/// Group of active serial lines with equal parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialLines {
    /// Number of active serial lines.
    pub lines: u16,
    /// Interval between two characters of one line.
    pub interval: Time,
    /// Processor time of the interrupt for each character; zero with DMA.
    pub per_char: Time,
    /// Processor time of the work after a line's buffer is full.
    pub per_buffer: Time,
    /// Capacity of a line's buffer in characters.
    pub buffer_chars: u32,
}

/// Serial lines of a computer, with the fill level of their buffers.
pub(crate) struct Serial {
    config: SerialLines,
    buffered_chars: Vec<Cell<u32>>,
}

impl Serial {
    pub(crate) fn new(config: SerialLines) -> Self {
        Self {
            config,
            buffered_chars: vec![Cell::new(0); usize::from(config.lines)],
        }
    }
}

impl Computer {
    /// Starts the serial lines, each with a random phase and a random buffer level.
    pub(crate) fn start_serial(&self, streams: Streams) {
        let SerialLines {
            lines, interval, ..
        } = self.serial.config;
        let mut phases = streams.stream("serial");
        for line in 0..lines {
            let first = self.sim.now() + Time(phases.below(interval.0));
            // How full its buffer is when the run begins, nobody knows.
            let buffer = u64::from(self.serial.config.buffer_chars);
            self.serial.buffered_chars[usize::from(line)].set(phases.below(buffer) as u32);
            self.sim.schedule_background(first, Event::Character(line));
        }
    }

    /// Receives a character on a serial line and schedules the next one.
    pub(crate) fn character(&self, line: u16) {
        let config = &self.serial.config;
        let next = self.sim.now() + config.interval;
        self.sim.schedule_background(next, Event::Character(line));
        let filled = &self.serial.buffered_chars[usize::from(line)];
        filled.set((filled.get() + 1) % config.buffer_chars);
        let full = if filled.get() == 0 {
            config.per_buffer
        } else {
            Time::ZERO
        };
        let cost = config.per_char + full;
        if cost > Time::ZERO {
            self.cpus.processors[CpuId::default()].interrupt(&self.sim, &[(TTY_LEVEL, cost)]);
        }
    }
}
