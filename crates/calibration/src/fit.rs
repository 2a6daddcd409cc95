//! The procedure, in the order in which each step needs the ones before it.

use crate::affine::{self, Affine, Before};
use crate::angles::{self, Reference, Stretches, scan_mean_direction, wrapped};
use crate::arrival::{self, FittedArrival, NAMES, Seen};
use crate::cache::{CacheRule, Extent, OnWrite};
use crate::filed;
use crate::model::{Answer, ArmRule, Model};
use crate::parameter::{Interval, Parameter};
use crate::phase_step::PhaseStep;
use crate::places::{Beyond, Placed, placed};
use crate::remains::{Remains, remains};
use crate::replay::{Replayed, follow, replay};
use crate::rules::{self, Measured};
use crate::score::Score;
use diskperf_diskspecs::layout::Layout;
use diskperf_diskspecs::phase::{self, Assumed, Phase, Think};
use diskperf_diskspecs::trace::{Operation, Request};
use diskperf_diskspecs::{Drive, FastWrite};

/// What may be asked for beside the whole procedure: checks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The first part of a trace that is fitted to: at most the first half.
    pub fitted_share: f64,
    /// Pauses that are put here whatever the trace shows.
    pub think: Option<Think>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fitted_share: 0.5,
            think: None,
        }
    }
}

/// A drive whose model was fitted to a part of its trace, and replayed.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// All requests of the trace.
    pub requests: usize,
    /// How many of them were fitted to.
    pub fitted_requests: usize,
    /// What the part showed of the spindle; nothing if hardly two requests share a cylinder.
    pub phase: Option<Phase>,
    /// Where the pauses are.
    pub think: Think,
    /// A revolution at the speed that the files have.
    pub nominal_period_us: f64,
    /// What was fitted.
    pub parameters: Vec<Parameter>,
    /// Of the second half, with what was fitted.
    pub score: Score,
    /// Of the second half, as the files are, with the pauses and the period alone.
    pub unfitted: Score,
    /// Of the whole trace.
    pub replayed: Vec<Replayed>,
    /// R of the requests that were fitted to and waited for the platter, with the angles that
    /// were found: 1 if all agree.
    pub r: f64,
    /// Jumps of the phase among the requests that were fitted to.
    pub phase_steps: Vec<PhaseStep>,
    /// Of the second half: reads that the drive answered from its buffer, by their times, and
    /// that the model did.
    pub buffer_reads: (usize, usize),
    /// Of the second half: what is off by more than half a millisecond.
    pub remains: Remains,
}

/// Fits a drive to the first part of its trace, and replays the whole of it.
///
/// # Errors
///
/// A request that is not on the drive.
pub fn calibrate(
    drive: &Drive,
    requests: &[Request],
    options: Options,
) -> Result<Calibration, Beyond> {
    let all = placed(&drive.model.layout, requests)?;
    let half = all.len() / 2;
    let share = options.fitted_share.clamp(0.0, 0.5);
    let fitted = &all[..((all.len() as f64 * share) as usize).min(half)];
    let nominal_us = drive.model.mechanics.nominal_period_ms() * 1e3;
    let firmware = drive.firmware.unwrap_or_default();
    let assumed = Assumed {
        period_us: nominal_us,
        transfer_us: drive.read_sector_ms() * 1e3,
        write_through: firmware.cache.fast_write == FastWrite::None,
    };
    let phase = phase::find(&drive.model.layout, &requests[..fitted.len()], &assumed);
    let seen = phase.and_then(|phase| phase.think);
    // Without a phase the pauses are where the form's reader has them.
    let think = options.think.or(seen).unwrap_or(Think::After);
    let period_us = match (phase, seen) {
        (Some(phase), Some(_)) => phase.period_us,
        _ => nominal_us,
    };
    let unfitted = filed::model(drive, period_us);
    let mut work = Work {
        placed: fitted,
        think,
        model: unfitted.clone(),
        parameters: Vec::new(),
        limit_us: 0.0,
        r: phase.map_or(0.0, |phase| phase.r),
        stretches: Stretches::default(),
    };
    work.fit(
        phase.filter(|_| seen.is_some() && options.think.is_none_or(|forced| Some(forced) == seen)),
    );
    let replayed = replay(&work.model, &all, think);
    let score = |replayed: &[Replayed]| {
        let pair = |(placed, replayed): (&Placed, &Replayed)| {
            (placed.request.service_us, replayed.service_us)
        };
        Score::of(
            &all[half..]
                .iter()
                .zip(&replayed[half..])
                .map(pair)
                .collect::<Vec<_>>(),
        )
    };
    let (second, second_replayed) = (&all[half..], &replayed[half..]);
    let is_read = |placed: &&Placed| placed.request.operation == Operation::Read;
    let held = second
        .iter()
        .filter(is_read)
        .filter(|placed| work.is_fast(placed));
    let modelled = second_replayed
        .iter()
        .filter(|one| one.answer == Answer::Buffer);
    let is_fast = |placed: &Placed| work.is_fast(placed);
    Ok(Calibration {
        nominal_period_us: nominal_us,
        r: work.r,
        phase_steps: work.stretches.steps(&work.completions_us()),
        buffer_reads: (held.count(), modelled.count()),
        remains: remains(&work.model, &all, half, think, is_fast),
        requests: all.len(),
        fitted_requests: fitted.len(),
        phase,
        think,
        score: score(&replayed),
        unfitted: score(&replay(&unfitted, &all, think)),
        parameters: work.parameters,
        replayed,
    })
}

/// A model on its way.
struct Work<'w> {
    placed: &'w [Placed],
    think: Think,
    model: Model<'w>,
    parameters: Vec<Parameter>,
    limit_us: f64,
    r: f64,
    stretches: Stretches,
}

impl Work<'_> {
    fn fit(&mut self, phase: Option<Phase>) {
        if let Some(phase) = phase {
            self.model.crossing_us = phase.transfer_us;
        }
        self.limit_us = self.buffer_limit_us();
        self.fit_crossing(phase);
        if phase.is_some() {
            self.find_angles();
        }
        self.fit_cache();
        self.fit_constants();
        if phase.is_some() {
            self.fit_arrivals();
        }
    }

    /// Completions as they were measured.
    fn completions_us(&self) -> Vec<f64> {
        let requests: Vec<Request> = self.placed.iter().map(|placed| placed.request).collect();
        phase::completions_us(&requests, self.think)
    }

    /// A service time without the blocks' time on the bus.
    fn until_sector_us(&self, placed: &Placed) -> f64 {
        placed.request.service_us - f64::from(placed.request.blocks) * self.model.crossing_us
    }

    /// A block's time on the bus: what a longer read from the buffer takes longer, and
    /// without such reads what makes the phases of reads from the medium agree.
    fn fit_crossing(&mut self, phase: Option<Phase>) {
        let is_held =
            |placed: &&Placed| placed.request.operation == Operation::Read && self.is_fast(placed);
        let point = |placed: &Placed| (f64::from(placed.request.blocks), placed.request.service_us);
        let held: Vec<(f64, f64)> = self.placed.iter().filter(is_held).map(point).collect();
        let line = affine::fit(&held, self.model.crossing_us);
        let shown = line.filter(|(line, errors)| errors[1] < 0.02 * line.block_us);
        let (value, error) = match (shown, phase) {
            (Some((line, errors)), _) => (line.block_us, errors[1]),
            (None, Some(phase)) => (phase.transfer_us, 0.0),
            (None, None) => return,
        };
        self.model.crossing_us = value;
        self.parameters.push(Parameter {
            name: "bus.read_block_us".to_owned(),
            value,
            interval: Interval::around(value, error),
        });
    }

    fn find_angles(&mut self) {
        let completions_us = self.completions_us();
        let half_us = self.model.period_us / 2.0;
        let references = |operation: Operation| {
            let waited = |(placed, _): &(&Placed, &f64)| {
                placed.request.operation == operation
                    && placed.pieces.len() == 1
                    && self.until_sector_us(placed) > half_us
            };
            let reference = |(placed, completion_us): (&Placed, &f64)| Reference {
                place: *placed.first(),
                completion_us: *completion_us,
                blocks: placed.request.blocks.into(),
            };
            let all = self.placed.iter().zip(&completions_us);
            all.filter(waited)
                .map(reference)
                .collect::<Vec<Reference>>()
        };
        let zones = match self.model.layout() {
            Layout::Zoned(zoned) => zoned.zones().len(),
            Layout::Mapped(_) | Layout::Indexed(_) => 0,
        };
        let surfaces = self.model.drive.model.surfaces;
        let reads = references(Operation::Read);
        let start = (self.model.period_us, self.model.crossing_us);
        let found = angles::find(&reads, zones, surfaces, start);
        let writes = references(Operation::Write);
        self.r = found.r;
        self.stretches = found.stretches;
        self.model.angles = found.angles;
        self.model.period_us = found.period_us;
        self.parameters.extend(found.parameters);
        if self.model.is_write_through {
            self.find_write_end(&reads, &writes);
        }
    }

    /// What a write needs from its last sector to its completion, less what a read does: the
    /// difference of their mean directions.
    fn find_write_end(&mut self, reads: &[Reference], writes: &[Reference]) {
        let model = &self.model;
        let begun = reads.iter().map(|read| {
            read.passed_rev(model.period_us, model.crossing_us)
                - model.angles.of(&read.place)
                - self.stretches.turned_at(read.completion_us)
        });
        let ended = writes.iter().map(|write| {
            let sectors = write.blocks / f64::from(write.place.sectors_per_track);
            write.completion_us / model.period_us
                - model.angles.of(&write.place)
                - sectors
                - self.stretches.turned_at(write.completion_us)
        });
        let (Some(read), Some(write)) = (scan_mean_direction(begun), scan_mean_direction(ended))
        else {
            return;
        };
        let later_us = wrapped(write.0 - read.0) * model.period_us;
        let error_us = (-2.0 * write.1.ln()).max(0.0).sqrt() / std::f64::consts::TAU
            * model.period_us
            / (writes.len() as f64).sqrt();
        self.model.write_end_us = later_us;
        self.parameters.push(Parameter {
            name: "bus.write_end_us".to_owned(),
            value: later_us,
            interval: Interval::around(later_us, error_us),
        });
    }

    /// Between reads from the buffer and those that waited for the platter hardly any time
    /// was measured: the middle of the emptiest stretch below half a revolution.
    fn buffer_limit_us(&self) -> f64 {
        const BINS: usize = 200;
        let half_us = self.model.period_us / 2.0;
        let mut bins = [0usize; BINS];
        for placed in self
            .placed
            .iter()
            .filter(|placed| placed.request.operation == Operation::Read)
        {
            let bin = (self.until_sector_us(placed) / half_us * BINS as f64).max(0.0) as usize;
            if let Some(count) = bins.get_mut(bin) {
                *count += 1;
            }
        }
        // Behind the most frequent time: that of the buffer, if there is one.
        let mode = bins
            .iter()
            .enumerate()
            .max_by_key(|bin| bin.1)
            .map_or(0, |bin| bin.0);
        const WIDTH: usize = 6;
        let within = |from: usize| bins[from..from + WIDTH].iter().sum::<usize>();
        let emptiest = (mode..BINS - WIDTH).min_by_key(|&from| within(from));
        // Reads that all wait for the platter come evenly over a revolution: no stretch of it
        // is empty, and none of them is from the buffer.
        let reads = self
            .placed
            .iter()
            .filter(|placed| placed.request.operation == Operation::Read);
        let evenly = reads.count() * WIDTH / (2 * BINS);
        match emptiest {
            Some(from) if 5 * within(from) <= evenly => {
                (from + WIDTH / 2) as f64 / BINS as f64 * half_us
            }
            _ => 0.0,
        }
    }

    fn is_fast(&self, placed: &Placed) -> bool {
        self.until_sector_us(placed) < self.limit_us
    }

    fn fit_cache(&mut self) {
        let completions_us = self.completions_us();
        let measured: Vec<Measured<'_>> = self
            .placed
            .iter()
            .zip(&completions_us)
            .map(|(placed, &completion_us)| Measured {
                placed,
                issue_us: completion_us - placed.request.service_us,
                completion_us,
                is_fast: self.is_fast(placed),
            })
            .collect();
        let skew = match &self.model.angles {
            angles::Angles::Fitted(skews) => skews.track,
            angles::Angles::Filed => 0.0,
        };
        let (rule, (low, high)) = rules::best(
            &measured,
            self.model.cache,
            self.model.period_us * (1.0 + skew),
        );
        self.model.cache = rule;
        self.parameters.extend(cache_parameters(rule, (low, high)));
    }

    /// Constants of what does not wait for the platter.
    fn fit_constants(&mut self) {
        let mut held: [Vec<(f64, f64)>; 5] = Default::default();
        let mut early: [Vec<(f64, f64)>; 5] = Default::default();
        let is_write_through = self.model.is_write_through;
        follow(
            &self.model,
            self.placed,
            self.think,
            |placed, prepared, _| {
                let request = &placed.request;
                let point = (f64::from(request.blocks), request.service_us);
                let answer = self.answer(placed, is_write_through);
                match answer {
                    Answer::Buffer => held[prepared.before as usize].push(point),
                    Answer::Early => early[prepared.before as usize].push(point),
                    Answer::Medium => {}
                }
                answer
            },
        );
        let crossing_us = self.model.crossing_us;
        let (lines, found) = lines("buffer", &held, (self.model.held, crossing_us));
        self.model.held = lines;
        self.parameters.extend(found);
        let (lines, found) = self::lines("early_write", &early, (self.model.early, crossing_us));
        self.model.early = lines;
        self.parameters.extend(found);
    }

    /// How a request was answered, by its time.
    fn answer(&self, placed: &Placed, is_write_through: bool) -> Answer {
        match placed.request.operation {
            Operation::Write if !is_write_through => Answer::Early,
            Operation::Read if self.is_fast(placed) => Answer::Buffer,
            _ => Answer::Medium,
        }
    }

    /// Where the arm waits, and when it arrives: the rule that makes the reads likeliest.
    fn fit_arrivals(&mut self) {
        let rules = [(true, true), (false, true), (true, false), (false, false)];
        let rules = rules.map(|(follows_read_ahead, follows_writes)| ArmRule {
            follows_read_ahead,
            follows_writes,
        });
        let mut best: Option<(ArmRule, FittedArrival, FittedArrival)> = None;
        for rule in rules {
            if self.model.is_write_through && !rule.follows_writes {
                continue;
            }
            self.model.arm = rule;
            let (reads, writes) = self.seen();
            let read = arrival::fit(&reads, self.model.period_us);
            let write = arrival::fit(&writes, self.model.period_us);
            let total = |read: &FittedArrival, write: &FittedArrival| {
                read.log_likelihood + write.log_likelihood
            };
            if best
                .as_ref()
                .is_none_or(|(_, r, w)| total(&read, &write) > total(r, w))
            {
                best = Some((rule, read, write));
            }
        }
        let Some((rule, read, write)) = best else {
            return;
        };
        self.model.arm = rule;
        for (name, value) in [
            ("arm.follows_read_ahead", rule.follows_read_ahead),
            ("arm.follows_writes", rule.follows_writes),
        ] {
            let value = f64::from(value);
            self.parameters.push(Parameter {
                name: name.to_owned(),
                value,
                interval: Interval::exact(value),
            });
        }
        self.parameters.extend(arrival_parameters("read", &read));
        self.parameters.extend(arrival_parameters("write", &write));
        self.model.read_arrival = read.arrival;
        self.model.write_arrival = write.arrival;
    }

    /// Reads and writes that waited for the platter.
    fn seen(&self) -> (Vec<Seen>, Vec<Seen>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let model = &self.model;
        follow(
            model,
            self.placed,
            self.think,
            |placed, prepared, issue_us| {
                let request = &placed.request;
                let answer = self.answer(placed, model.is_write_through);
                let service_us = request.service_us - (prepared.start_us - issue_us);
                let is_whole =
                    prepared.pieces.len() == 1 && prepared.pieces[0].blocks == request.blocks;
                if answer == Answer::Medium && is_whole {
                    match request.operation {
                        Operation::Read => reads.push(Seen {
                            circumstances: prepared.circumstances,
                            until_sector_us: service_us
                                - f64::from(request.blocks) * model.crossing_us,
                        }),
                        Operation::Write => {
                            let sectors = f64::from(request.blocks)
                                / f64::from(placed.first().sectors_per_track);
                            writes.push(Seen {
                                circumstances: prepared.circumstances,
                                until_sector_us: service_us
                                    - sectors * model.period_us
                                    - model.write_end_us,
                            });
                        }
                    }
                }
                answer
            },
        );
        (reads, writes)
    }
}

fn lines(
    kind: &str,
    points: &[Vec<(f64, f64)>; 5],
    (filed, crossing_us): ([Affine; 5], f64),
) -> ([Affine; 5], Vec<Parameter>) {
    let all: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
    let common = affine::fit(&all, crossing_us);
    let mut lines = common.map_or(filed, |common| [common.0; 5]);
    let mut found = Vec::new();
    for before in Before::ALL {
        let Some((line, errors)) = affine::fit(&points[before as usize], crossing_us) else {
            continue;
        };
        lines[before as usize] = line;
        let values = [("fixed_us", line.fixed_us), ("block_us", line.block_us)];
        for ((name, value), error) in values.into_iter().zip(errors) {
            found.push(Parameter {
                name: format!("{kind}.{}.{name}", before.name()),
                value,
                interval: Interval::around(value, error),
            });
        }
    }
    (lines, found)
}

fn cache_parameters(rule: CacheRule, (low, high): (u32, u32)) -> Vec<Parameter> {
    let exact = |name: &str, value: f64| Parameter {
        name: format!("cache.{name}"),
        value,
        interval: Interval::exact(value),
    };
    let mut all = vec![
        exact("segments", rule.segments.into()),
        exact("keeps_behind", f64::from(rule.keeps_behind)),
        exact("write_clears_all", f64::from(rule.on_write == OnWrite::All)),
        exact("keeps_written", f64::from(rule.keeps_written)),
        exact("only_contiguous", f64::from(rule.only_contiguous)),
        exact("goes_on", f64::from(rule.goes_on)),
    ];
    all.push(match rule.extent {
        Extent::Ahead(blocks) => Parameter {
            name: "cache.read_ahead_blocks".to_owned(),
            value: blocks.into(),
            interval: Interval {
                low: low.into(),
                high: high.into(),
            },
        },
        Extent::Tracks { and_next } => exact("tracks", if and_next { 2.0 } else { 1.0 }),
    });
    all
}

fn arrival_parameters(kind: &str, fitted: &FittedArrival) -> Vec<Parameter> {
    let all = NAMES
        .iter()
        .zip(fitted.arrival.weights_us)
        .zip(fitted.errors_us);
    let shown = all.filter(|(_, error)| *error > 0.0);
    shown
        .map(|((name, value), error)| Parameter {
            name: format!("arrival.{kind}.{name}"),
            value,
            interval: Interval::around(value, error),
        })
        .collect()
}
