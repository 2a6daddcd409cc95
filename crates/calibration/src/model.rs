//! A drive that serves one request at a time.

use crate::affine::{Affine, Before};
use crate::angles::Angles;
use crate::arrival::{Arrival, Circumstances};
use crate::cache::{Buffer, CacheRule, Look};
use crate::places::{Piece, Place, Placed};
use diskperf_diskspecs::layout::Layout;
use diskperf_diskspecs::trace::Operation;
use diskperf_diskspecs::{Drive, Mechanics};

/// Where the arm is when nothing more is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArmRule {
    /// After a read, where reading ahead ended; else at the read's last block.
    pub follows_read_ahead: bool,
    /// After a write that was reported early, where it went; else where it was before.
    pub follows_writes: bool,
}

/// A drive: its files, and what a trace shows of it.
#[derive(Clone, Debug)]
pub(crate) struct Model<'d> {
    pub(crate) drive: &'d Drive,
    /// A revolution.
    pub(crate) period_us: f64,
    /// A block to the host.
    pub(crate) crossing_us: f64,
    pub(crate) angles: Angles,
    /// From a write's last sector to its completion, less what a read needs.
    pub(crate) write_end_us: f64,
    /// Whether a write is complete when it is on the medium.
    pub(crate) is_write_through: bool,
    /// Reads from the buffer, by what was before.
    pub(crate) held: [Affine; 5],
    /// Writes that are reported early, by what was before.
    pub(crate) early: [Affine; 5],
    pub(crate) cache: CacheRule,
    pub(crate) arm: ArmRule,
    pub(crate) read_arrival: Arrival,
    pub(crate) write_arrival: Arrival,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// From the buffer.
    Buffer,
    /// From the medium.
    Medium,
    /// A write that was reported before it was on the medium.
    Early,
}

/// A drive between two requests.
pub(crate) struct State<'m> {
    model: &'m Model<'m>,
    pub(crate) buffer: Buffer,
    arm: Place,
    last: Option<Operation>,
    last_end: u64,
    /// A write that was reported early is being written until then.
    pub(crate) busy_until_us: f64,
    /// The last write that was reported early, if the medium was not read since.
    pub(crate) destaged: Option<Destaged>,
}

/// A write that was reported early: when the arm goes there is the drive's to choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destaged {
    /// Where the arm was before it.
    pub(crate) from: Place,
    /// Where it was written.
    pub(crate) to: Place,
}

/// A request that has come to the drive.
pub(crate) struct Prepared {
    /// When the drive began with it.
    pub(crate) start_us: f64,
    pub(crate) look: Look,
    pub(crate) circumstances: Circumstances,
    pub(crate) before: Before,
    /// What has to be read or written.
    pub(crate) pieces: Vec<Piece>,
}

impl Model<'_> {
    fn mechanics(&self) -> &Mechanics {
        &self.drive.model.mechanics
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.drive.model.layout
    }

    /// When an angle is under the head next.
    fn next_us(&self, angle: f64, from_us: f64) -> f64 {
        let turns = from_us / self.period_us - angle;
        (turns.ceil() + angle) * self.period_us
    }

    /// When the sectors of the pieces have begun to pass and have passed, from the head's
    /// arrival on; and when the last block of a read has crossed the bus.
    pub(crate) fn passes(&self, pieces: &[Piece], arrival_us: f64) -> Passed {
        let mut left: u32 = pieces.iter().map(|piece| piece.blocks).sum();
        let mut passed = Passed {
            first_us: 0.0,
            end_us: arrival_us,
            crossed_us: 0.0,
        };
        for (index, piece) in pieces.iter().enumerate() {
            let angle = self.angles.of(&piece.place);
            // The skew is made for the switch of heads: the next track's sector is awaited.
            let from_us = self.next_us(angle, passed.end_us);
            if index == 0 {
                passed.first_us = from_us;
            }
            let sectors = f64::from(piece.blocks) / f64::from(piece.place.sectors_per_track);
            passed.end_us = from_us + sectors * self.period_us;
            passed.crossed_us = passed
                .crossed_us
                .max(from_us + f64::from(left) * self.crossing_us);
            left -= piece.blocks;
        }
        passed.crossed_us = passed.crossed_us.max(passed.end_us);
        passed
    }

    /// When the head is over the track of a request that waits for the platter.
    pub(crate) fn arrival_us(&self, prepared: &Prepared, operation: Operation) -> f64 {
        let arrival = match operation {
            Operation::Read => &self.read_arrival,
            Operation::Write => &self.write_arrival,
        };
        prepared.start_us + arrival.at(&prepared.circumstances)
    }

    fn filed_us(&self, from: &Place, to: &Place, is_write: bool) -> f64 {
        let mechanics = self.mechanics();
        let distance = from.cylinder.abs_diff(to.cylinder);
        let seek_ms = mechanics.seek.time_ms(distance, self.drive.model.cylinders);
        let switch_ms = match from.head == to.head {
            true => 0.0,
            false => mechanics.head_switch_ms,
        };
        let moved_ms = seek_ms.max(switch_ms);
        let settle_ms = match is_write && moved_ms > 0.0 {
            true => mechanics.write_settle_ms,
            false => 0.0,
        };
        (moved_ms + settle_ms) * 1e3
    }
}

/// Sectors under the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// The first one begins.
    pub(crate) first_us: f64,
    /// The last one ends.
    pub(crate) end_us: f64,
    /// The last block has crossed the bus.
    pub(crate) crossed_us: f64,
}

impl<'m> State<'m> {
    pub(crate) fn new(model: &'m Model<'m>, first: &Placed) -> State<'m> {
        // A track's skew lies between two tracks that are read one after the other.
        let skew = match &model.angles {
            Angles::Fitted(skews) => skews.track,
            Angles::Filed => filed_skew(model.layout(), first),
        };
        State {
            model,
            buffer: Buffer::new(model.cache, model.period_us * (1.0 + skew.rem_euclid(1.0))),
            arm: *first.first(),
            last: None,
            last_end: u64::MAX,
            busy_until_us: 0.0,
            destaged: None,
        }
    }

    /// The drive begins with a request.
    pub(crate) fn prepare(&self, placed: &Placed, issue_us: f64) -> Prepared {
        let look = match placed.request.operation {
            Operation::Write => Look::Missing,
            Operation::Read => self.buffer.look(placed, issue_us),
        };
        let start_us = issue_us.max(self.busy_until_us);
        self.prepare_from(placed, look, start_us, self.arm_at(start_us))
    }

    /// The drive begins with a request at a time, with the arm at a place.
    pub(crate) fn prepare_from(
        &self,
        placed: &Placed,
        look: Look,
        start_us: f64,
        arm: Place,
    ) -> Prepared {
        let request = &placed.request;
        let is_write = request.operation == Operation::Write;
        let pieces = match look {
            Look::Partly { missing } => rest_of(self.model.layout(), placed, missing),
            _ => placed.pieces.clone(),
        };
        let to = pieces[0].place;
        let circumstances = Circumstances {
            filed_us: self.model.filed_us(&arm, &to, is_write),
            distance_cylinders: arm.cylinder.abs_diff(to.cylinder),
            is_inward: to.cylinder > arm.cylinder,
            switches_head: arm.head != to.head,
            after_write: self.last == Some(Operation::Write),
            is_reading_ahead: self.buffer.is_filling(start_us),
            blocks: if is_write { request.blocks } else { 0 },
        };
        let before = match circumstances.is_reading_ahead {
            true => Before::ReadingAhead,
            false => self.before(placed),
        };
        Prepared {
            start_us,
            look,
            circumstances,
            before,
            pieces,
        }
    }

    fn before(&self, placed: &Placed) -> Before {
        let follows = placed.request.first_block == self.last_end;
        match (self.last, follows) {
            (Some(Operation::Write), true) => Before::ContiguousWrite,
            (Some(Operation::Write), false) => Before::Write,
            (_, true) => Before::ContiguousRead,
            (_, false) => Before::Read,
        }
    }

    pub(crate) fn period_us(&self) -> f64 {
        self.model.period_us
    }

    /// The last request, if it was a read: where its last blocks are, and where reading
    /// ahead of it ends.
    pub(crate) fn read_last(&self) -> Option<(Place, Option<Place>)> {
        let ended = self.last == Some(Operation::Read);
        ended.then(|| {
            (
                self.arm,
                self.buffer
                    .ahead_end()
                    .and_then(|end| self.place_before(end)),
            )
        })
    }

    /// Of the block before another.
    fn place_before(&self, block: u64) -> Option<Place> {
        Place::of(self.model.layout(), block.saturating_sub(1))
    }

    fn arm_at(&self, now_us: f64) -> Place {
        let after_read = self.last == Some(Operation::Read);
        if !(after_read && self.model.arm.follows_read_ahead) {
            return self.arm;
        }
        let block = match self.buffer.filled_to(now_us) {
            Some(to) => Some(to),
            None => self.buffer.ahead_end(),
        };
        let place = block.and_then(|block| self.place_before(block));
        place.unwrap_or(self.arm)
    }

    /// What the model makes of a request: its completion, and how it was answered.
    pub(crate) fn modelled(
        &self,
        prepared: &Prepared,
        placed: &Placed,
        issue_us: f64,
    ) -> (f64, Answer) {
        let (model, request) = (self.model, &placed.request);
        let class = prepared.before as usize;
        if request.operation == Operation::Write {
            if !model.is_write_through {
                return (
                    issue_us + model.early[class].at(request.blocks),
                    Answer::Early,
                );
            }
            let arrival_us = model.arrival_us(prepared, request.operation);
            return (
                model.passes(&prepared.pieces, arrival_us).end_us + model.write_end_us,
                Answer::Medium,
            );
        }
        let held_us = issue_us + model.held[class].at(request.blocks);
        match prepared.look {
            Look::Held => (held_us, Answer::Buffer),
            Look::Coming { at_us } => (held_us.max(at_us + model.crossing_us), Answer::Buffer),
            Look::Partly { .. } | Look::Missing => {
                let arrival_us = model.arrival_us(prepared, request.operation);
                let passed = model.passes(&prepared.pieces, arrival_us);
                (passed.crossed_us.max(held_us), Answer::Medium)
            }
        }
    }

    /// A request is complete.
    pub(crate) fn finish(
        &mut self,
        placed: &Placed,
        issue_us: f64,
        completion_us: f64,
        answer: Answer,
    ) {
        let request = &placed.request;
        match (request.operation, answer) {
            (Operation::Read, Answer::Buffer) => self.buffer.was_held(placed, completion_us),
            (Operation::Read, _) => {
                self.buffer.stop(issue_us);
                self.buffer.was_read(placed, completion_us);
                self.arm = placed.last().place;
                self.destaged = None;
            }
            (Operation::Write, _) => self.written(placed, issue_us, completion_us, answer),
        }
        self.last = Some(request.operation);
        self.last_end = placed.end();
    }

    fn written(&mut self, placed: &Placed, issue_us: f64, completion_us: f64, answer: Answer) {
        let from = self.arm_at(completion_us);
        self.buffer.was_written(placed, issue_us);
        if answer != Answer::Early {
            self.arm = placed.last().place;
            return;
        }
        self.arm = from;
        self.destaged = Some(Destaged {
            from,
            to: placed.last().place,
        });
        if self.model.arm.follows_writes {
            let seek_us = self.model.filed_us(&from, placed.first(), true);
            let begin_us = completion_us.max(self.busy_until_us) + seek_us;
            self.busy_until_us = self.model.passes(&placed.pieces, begin_us).end_us;
            self.arm = placed.last().place;
        }
    }
}

/// What of a request is behind a block.
fn rest_of(layout: &Layout, placed: &Placed, missing: u64) -> Vec<Piece> {
    let mut block = placed.request.first_block;
    let mut rest = Vec::new();
    for piece in &placed.pieces {
        let end = block + u64::from(piece.blocks);
        if let (true, Some(place)) = (end > missing, Place::of(layout, block.max(missing))) {
            rest.push(Piece {
                place,
                blocks: (end - block.max(missing)) as u32,
            });
        }
        block = end;
    }
    rest
}

/// The files' skew from a request's track to the next, in revolutions.
fn filed_skew(layout: &Layout, placed: &Placed) -> f64 {
    let angle = |block: u64| Place::of(layout, block).map(|place| place.filed);
    match (
        angle(placed.track_end),
        Place::of(layout, placed.track_end - 1),
    ) {
        (Some(next), Some(last)) => next - last.filed - 1.0 / f64::from(last.sectors_per_track),
        _ => 0.0,
    }
}
