//! Serial lines that bring characters all the time: a load that interrupts
//! whatever else is done (Speck and Bass 1984).

use super::computer::Computer;
use crate::event::Event;
use diskperf_sim::{CpuId, Level, Streams, Time};
use std::cell::Cell;

/// The level at which terminal interfaces interrupt: that of the disks.
const TTY: Level = super::process::BIO;

/// Active lines, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialLines {
    /// How many.
    pub lines: u16,
    /// From a character to the next.
    pub interval: Time,
    /// The interrupt of each character; none with DMA.
    pub per_char: Time,
    /// What follows when a buffer is full.
    pub per_buffer: Time,
    /// Characters in a buffer.
    pub buffer_chars: u32,
}

/// The lines of a kernel.
pub(crate) struct Serial {
    config: SerialLines,
    /// Of each line, the characters in its buffer.
    filled: Vec<Cell<u32>>,
}

impl Serial {
    pub(crate) fn new(config: SerialLines) -> Self {
        Self {
            config,
            filled: vec![Cell::new(0); usize::from(config.lines)],
        }
    }
}

impl Computer {
    /// Starts the lines, each at a moment of its own.
    pub(crate) fn start_serial(&self, streams: Streams) {
        let SerialLines {
            lines, interval, ..
        } = self.serial.config;
        let mut phases = streams.stream("serial");
        for line in 0..lines {
            let first = self.sim.now() + Time(phases.below(interval.0));
            // How full its buffer is when the run begins, nobody knows.
            let buffer = u64::from(self.serial.config.buffer_chars);
            self.serial.filled[usize::from(line)].set(phases.below(buffer) as u32);
            self.sim.schedule_background(first, Event::Character(line));
        }
    }

    /// A character has come.
    pub(crate) fn character(&self, line: u16) {
        let config = &self.serial.config;
        let next = self.sim.now() + config.interval;
        self.sim.schedule_background(next, Event::Character(line));
        let filled = &self.serial.filled[usize::from(line)];
        filled.set((filled.get() + 1) % config.buffer_chars);
        let full = if filled.get() == 0 {
            config.per_buffer
        } else {
            Time::ZERO
        };
        let cost = config.per_char + full;
        if cost > Time::ZERO {
            self.cpus.processors[CpuId::default()].interrupt(&self.sim, &[(TTY, cost)]);
        }
    }
}
