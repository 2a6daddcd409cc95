//! Bass's calculation against the modelled machine: the same best factor for
//! nearly all cases, drawn at random with a tenth of them at an edge, where a
//! sector more or less decides.

use diskperf_analysis::interleave::{
    ClockInterrupts, InterleaveInputs, SerialInput, SerialMethod, ServiceTimes, TrackFormat,
    calculate_interleave,
};
use diskperf_laboratory::interleave::run_model;
use diskperf_machine::RunBudget;
use rand_core::Rng;
use rand_pcg::Pcg64;
use std::sync::Arc;

/// Cases drawn; the bench draws more of the same.
const CASES: u32 = 40;
/// The day of Bass's article.
const SEED: u64 = 19_840_726;

struct Draw(Pcg64);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.below(1 << 30) as f64 / (1_u64 << 30) as f64)
    }

    fn track(&mut self) -> TrackFormat {
        TrackFormat {
            rpm: [2400.0, 3000.0, 3600.0][self.below(3) as usize],
            sectors_per_track: [9, 16, 17, 26, 32][self.below(5) as usize],
            spare_sectors_per_track: self.below(2) as u32,
            sector_bytes: [512, 1024][self.below(2) as usize],
        }
    }

    /// Parts that together take up to five sectors; a tenth of the cases ends
    /// within half a sector of where the next one begins.
    fn service(&mut self, track: &TrackFormat, at_edge: bool) -> ServiceTimes {
        let sector_ms = track.sector_ms();
        let total = if at_edge {
            let edge = 1.0 + self.below(4) as f64;
            sector_ms * (edge + self.between(-0.5, 0.5))
        } else {
            sector_ms * self.between(0.1, 5.0)
        };
        let shares: Vec<f64> = (0..7).map(|_| self.between(0.05, 1.0)).collect();
        let sum: f64 = shares.iter().sum();
        let part = |number: usize| total * shares[number] / sum;
        ServiceTimes {
            interrupt_latency_ms: part(0),
            driver_ms: part(1),
            transfer_start_ms: part(2),
            reschedule_ms: part(3),
            higher_priority_ms: part(4),
            system_call_ms: part(5),
            application_ms: part(6),
        }
    }

    fn serial(&mut self) -> SerialInput {
        let method = [
            SerialMethod::Programmed,
            SerialMethod::PseudoDma,
            SerialMethod::Dma,
        ][self.below(3) as usize];
        let programmed = method == SerialMethod::Programmed;
        SerialInput {
            line_count: 1 + self.below(3) as u32,
            baud_rate: [1200, 9600][self.below(2) as usize],
            method,
            us_per_char: match method {
                SerialMethod::Programmed => self.between(50.0, 250.0),
                SerialMethod::PseudoDma => self.between(50.0, 150.0),
                SerialMethod::Dma => 0.0,
            },
            completion_us_per_char: if programmed {
                0.0
            } else {
                self.between(5.0, 50.0)
            },
            buffer_chars: if programmed {
                1
            } else {
                16 + self.below(17) as u32
            },
            raw_wakeup_us: (!programmed && self.below(4) == 0).then(|| self.between(50.0, 200.0)),
        }
    }

    fn inputs(&mut self, at_edge: bool) -> InterleaveInputs {
        let track = self.track();
        InterleaveInputs {
            service: self.service(&track, at_edge),
            cpu_speed: 1.0,
            clock_interrupts: (self.below(2) == 0).then(|| ClockInterrupts {
                frequency_hz: [50.0, 60.0, 100.0][self.below(3) as usize],
                tick_ms: self.between(0.1, 1.5),
            }),
            serial_input: (self.below(3) == 0).then(|| self.serial()),
            has_read_ahead: false,
            outstanding_reads: 1,
            track,
        }
    }
}

#[test]
fn the_calculation_finds_the_factor_that_the_machine_is_best_at() {
    println!("seed {SEED}");
    let cases = std::env::var("DISKPERF_INTERLEAVE_CASES");
    let cases: u32 = cases.map_or(CASES, |count| count.parse().expect("a number of cases"));
    let mut draw = Draw(Pcg64::new(u128::from(SEED), 1));
    let (mut same, mut nearly) = (0, 0);
    for number in 0..cases {
        // More than the processor has is refused by both.
        let (inputs, mut found) = loop {
            let inputs = draw.inputs(number % 10 == 0);
            let found = calculate_interleave(&inputs, None).expect("a case in range");
            let shares = found.interruptions.iter().map(|one| one.processor_share);
            if shares.sum::<f64>() < 0.9 {
                break (inputs, found);
            }
        };
        let factors: Vec<u32> = found.factor_results.iter().map(|row| row.factor).collect();
        let how = (u64::from(number), 2);
        let rates = run_model(&inputs, &factors, how, RunBudget::DEFAULT, &Arc::default());
        found.set_modelled_rates(&rates.expect("a case that the machine can be given"));
        let (own, best) = (
            found.recommended_factor.factor,
            found.best_modelled_factor().expect("rates"),
        );
        // As good a factor as the best, to within what chance moves.
        let rate = |factor| {
            found
                .find_factor(factor)
                .and_then(|row| row.modelled_kb_per_s)
        };
        if own == best {
            same += 1;
            continue;
        }
        println!(
            "case {number}: calculated {own}, modelled {best} ({:?} and {:?} KB/s), {}: {inputs:?}",
            rate(own),
            rate(best),
            found.limiting_cost.name()
        );
        nearly += u32::from(own.abs_diff(best) == 1);
    }
    println!("{same} of {cases} the same, {nearly} a step apart");
    assert!(
        f64::from(same) >= 0.95 * f64::from(cases),
        "{same} of {cases}"
    );
    assert_eq!(same + nearly, cases, "never more than a step apart");
}
