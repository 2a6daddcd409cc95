//! Serial lines that receive characters continuously and load the processor with interrupts (Speck
//! and Bass 1984).

use super::computer::Computer;
use crate::event::MachineEvent;
use diskperf_sim::{CpuId, InterruptLevel, RandomStreams, Time};
use std::cell::Cell;

/// Interrupt level of terminal interfaces, the same as that of the disks.
const TTY_LEVEL: InterruptLevel = super::process::BIO_LEVEL;

/// Group of active serial lines with equal parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialLines {
    /// Number of active serial lines.
    pub line_count: u16,
    /// Interval between two characters of one line.
    pub output_interval: Time,
    /// Processor time of the interrupt for each character; zero with DMA.
    pub interrupt_time_per_char: Time,
    /// Processor time of the work after a line's buffer is full.
    pub interrupt_time_per_buffer: Time,
    /// Capacity of a line's buffer in characters.
    pub buffer_chars: u32,
}

/// Serial lines of a computer, with the fill level of their buffers.
pub(crate) struct SerialOutput {
    config: SerialLines,
    buffered_chars: Vec<Cell<u32>>,
}

impl SerialOutput {
    pub(crate) fn new(config: SerialLines) -> Self {
        Self {
            config,
            buffered_chars: vec![Cell::new(0); usize::from(config.line_count)],
        }
    }
}

impl Computer {
    /// Starts the serial lines, each with a random phase and a random buffer level.
    pub(crate) fn start_serial_output(&self, streams: RandomStreams) {
        let SerialLines {
            line_count: lines,
            output_interval: interval,
            ..
        } = self.serial_lines.config;
        let mut phases = streams.named_stream("serial");
        for line in 0..lines {
            let first = self.simulation.now() + Time(phases.draw_below(interval.0));
            // How full its buffer is when the run begins, nobody knows.
            let buffer = u64::from(self.serial_lines.config.buffer_chars);
            self.serial_lines.buffered_chars[usize::from(line)]
                .set(phases.draw_below(buffer) as u32);
            self.simulation
                .schedule_background(first, MachineEvent::SerialCharacter(line));
        }
    }

    /// Receives a character on a serial line and schedules the next one.
    pub(crate) fn handle_character_interrupt(&self, line: u16) {
        let config = &self.serial_lines.config;
        let next = self.simulation.now() + config.output_interval;
        self.simulation
            .schedule_background(next, MachineEvent::SerialCharacter(line));
        let filled = &self.serial_lines.buffered_chars[usize::from(line)];
        filled.set((filled.get() + 1) % config.buffer_chars);
        let full = if filled.get() == 0 {
            config.interrupt_time_per_buffer
        } else {
            Time::ZERO
        };
        let cost = config.interrupt_time_per_char + full;
        if cost > Time::ZERO {
            self.cpus.processors[CpuId::default()]
                .run_interrupts(&self.simulation, &[(TTY_LEVEL, cost)]);
        }
    }
}
