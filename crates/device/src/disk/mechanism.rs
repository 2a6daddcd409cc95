//! Arm and platters: how long it takes to get to sectors and to have them pass.

mod reading_on;

use super::layout::{Layout, LayoutError, LayoutSpecification, Place, Run};
use super::seek::{SeekCurve, SeekError, SeekSpecification};
use super::spindle::{PERIOD_NS, Spindle, Turn};
use crate::WhatIf;
use diskperf_sim::Time;

/// Arm and platters, as a catalogue file or an importer describes them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct MechanismSpecification {
    /// Where the sectors are.
    pub layout: LayoutSpecification,
    /// How the arm moves.
    pub seek: SeekSpecification,
    /// How long another head takes to take over, in ms; at the same time as a seek.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head_switch_ms: f64,
    /// How much longer a write waits after a seek or a change of the head, in ms. Fitted
    /// values may be negative.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_settle_ms: f64,
    /// How the arm moves for writes, where that was measured; as for reads if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_seek: Option<SeekSpecification>,
    /// How much longer ways inwards take than those outwards, in ms: of reads and of writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub inward_ms: [f64; 2],
    /// How long the arm rests before a command for a track where it is already, in ms: of
    /// reads and of writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub same_track_ms: [f64; 2],
    /// The true time of a revolution, in ns.
    pub period_ns: f64,
    /// Whether reads begin anywhere inside their sectors of a track.
    #[cfg_attr(feature = "serde", serde(default))]
    pub zero_latency_reads: bool,
    /// The same for writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub zero_latency_writes: bool,
}

/// Why no mechanism is like that.
#[derive(Clone, Debug, PartialEq)]
pub enum MechanismError {
    /// Of the layout.
    Layout(LayoutError),
    /// Of the arm.
    Seek(SeekError),
    /// Of the arm, in the table of writes.
    WriteSeek(SeekError),
    /// A number that no disk has.
    Number {
        /// The key.
        key: &'static str,
        /// Its number.
        value: f64,
        /// The least that is taken.
        least: f64,
        /// The most that is taken.
        most: f64,
    },
}

impl std::fmt::Display for MechanismError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(formatter),
            Self::Seek(error) => error.fmt(formatter),
            Self::WriteSeek(error) => error.fmt(formatter),
            Self::Number {
                key,
                value,
                least,
                most,
            } => write!(
                formatter,
                "`{key}` is {value}, and must be between {least} and {most}"
            ),
        }
    }
}

impl std::error::Error for MechanismError {}

impl From<LayoutError> for MechanismError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<SeekError> for MechanismError {
    fn from(error: SeekError) -> Self {
        Self::Seek(error)
    }
}

/// Sectors that are to be read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The first one.
    pub sector: u64,
    /// How many, at least one.
    pub sectors: u32,
    /// Whether they are written.
    pub write: bool,
    /// What passes before the arm moves.
    pub overhead: Time,
    /// Whether only a part of the first sector is written: it is read first.
    pub part_of_first: bool,
    /// The same of the last sector.
    pub part_of_last: bool,
}

/// Where the time of an access went; together all of it, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Before the arm moved.
    pub overhead: Time,
    /// The arm's ways, and its rest on a track where it is already.
    pub seek: Time,
    /// Changes of the head, as far as they took longer than the arm.
    pub head_switch: Time,
    /// Rest after these before a write.
    pub settle: Time,
    /// Until sectors came by.
    pub latency: Time,
    /// While they passed.
    pub transfer: Time,
    /// Revolutions between reading a sector and writing a part of it.
    pub rewrite: Time,
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> Time {
        let Self {
            overhead,
            seek,
            head_switch,
            settle,
            latency,
            transfer,
            rewrite,
        } = *self;
        overhead + seek + head_switch + settle + latency + transfer + rewrite
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.overhead += other.overhead;
        self.seek += other.seek;
        self.head_switch += other.head_switch;
        self.settle += other.settle;
        self.latency += other.latency;
        self.transfer += other.transfer;
        self.rewrite += other.rewrite;
    }
}

/// Neighbouring sectors of an access that pass a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The first one.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// When the first begins to pass; those that passed before it, where reading began
    /// in the middle, are there already.
    pub begins: Time,
    /// When all of them have passed.
    pub ends: Time,
}

/// How far the arm has to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    seek: Time,
    head_switch: Time,
    settle: Time,
}

impl Way {
    #[inline]
    fn total(self) -> Time {
        self.seek + self.head_switch + self.settle
    }
}

/// Arm and platters.
#[derive(Clone, Debug)]
pub struct Mechanism {
    layout: Layout,
    seek: SeekCurve,
    head_switch: Time,
    write_settle_ns: i64,
    /// On a track where the arm is already, before reads and writes.
    same_track: [Time; 2],
    spindle: Spindle,
    /// Of reads and of writes.
    zero_latency: [bool; 2],
    cylinder: u32,
    head: u32,
    what_if: WhatIf,
}

/// The longest change of the head and the longest rest that are taken, in ms.
const LONGEST_MS: f64 = 1000.0;

impl Mechanism {
    /// A mechanism at cylinder 0, head 0, whose platters are at this angle at time zero.
    ///
    /// # Errors
    ///
    /// [`MechanismError`] when the specification contradicts itself.
    pub fn new(
        specification: &MechanismSpecification,
        phase: Turn,
    ) -> Result<Self, MechanismError> {
        let of = specification;
        number("head_switch_ms", of.head_switch_ms, (0.0, LONGEST_MS))?;
        number(
            "write_settle_ms",
            of.write_settle_ms,
            (-LONGEST_MS, LONGEST_MS),
        )?;
        number(
            "period_ns",
            of.period_ns,
            (*PERIOD_NS.start(), *PERIOD_NS.end()),
        )?;
        let layout = Layout::new(&of.layout)?;
        let rests = ["same_track_ms", "write_same_track_ms"];
        for (key, ms) in rests.into_iter().zip(of.same_track_ms) {
            number(key, ms, (0.0, LONGEST_MS))?;
        }
        let inwards = ["seek_inward_ms", "write_seek_inward_ms"];
        for (key, ms) in inwards.into_iter().zip(of.inward_ms) {
            number(key, ms, (-LONGEST_MS, LONGEST_MS))?;
        }
        let curve = |of: &SeekSpecification| SeekCurve::new(of, layout.cylinders());
        let writes = of.write_seek.as_ref().map(curve).transpose();
        let writes = writes.map_err(MechanismError::WriteSeek)?;
        let seek = curve(&of.seek)?.directed(writes, of.inward_ms)?;
        Ok(Self {
            layout,
            seek,
            head_switch: Time((of.head_switch_ms * 1e6 + 0.5) as u64),
            write_settle_ns: (of.write_settle_ms * 1e6).round() as i64,
            same_track: of.same_track_ms.map(|ms| Time((ms * 1e6 + 0.5) as u64)),
            spindle: Spindle::new(of.period_ns, phase),
            zero_latency: [of.zero_latency_reads, of.zero_latency_writes],
            cylinder: 0,
            head: 0,
            what_if: WhatIf::default(),
        })
    }

    /// The same mechanism, with something supposed of it.
    #[must_use]
    pub fn supposing(mut self, what_if: WhatIf) -> Self {
        if what_if.no_seek {
            self.same_track = [Time::ZERO; 2];
        }
        self.what_if = what_if;
        self
    }

    /// What is supposed of it.
    #[inline]
    pub fn supposes(&self) -> WhatIf {
        self.what_if
    }

    /// Supposed that nothing is waited for on a track, the platter is turned to where a
    /// sector begins.
    #[inline(always)]
    fn turn_to(&mut self, at: Time, start: Turn) {
        if self.what_if.no_rotational_latency {
            self.spindle = self.spindle.turned_to(at, start);
        }
    }

    /// Supposed that deadlines are met, the platter is turned back to where a sector
    /// begins that was missed.
    #[cold]
    pub fn turn_back(&mut self, at: Time, start: Turn) {
        let half = Time(self.spindle.period().0 / 2);
        if self.spindle.until(at, start) > half {
            self.spindle = self.spindle.turned_to(at, start);
        }
    }

    /// Where the sectors are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How the arm moves.
    pub fn seek(&self) -> &SeekCurve {
        &self.seek
    }

    /// How it turns.
    pub fn spindle(&self) -> &Spindle {
        &self.spindle
    }

    /// Has it turn as another spindle does, from now on.
    pub fn set_spindle(&mut self, spindle: Spindle) {
        self.spindle = spindle;
    }

    /// The cylinder that the arm is at.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// The head that is in use.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Puts the arm somewhere else, in no time.
    pub fn place_arm(&mut self, cylinder: u32, head: u32) {
        (self.cylinder, self.head) = (cylinder, head);
    }

    /// How long the arm takes to a place, its turn of the platters not counted.
    pub fn way_to(&self, place: &Place, write: bool) -> Time {
        self.way(place, write, true).total()
    }

    /// How long it would take from now on until a sector begins to pass: what policies of
    /// shortest positioning time go by.
    #[inline]
    pub fn positioning(&self, now: Time, place: &Place, write: bool) -> Time {
        let way = self.way(place, write, true).total();
        match self.what_if.no_rotational_latency {
            true => way,
            false => way + self.spindle.until(now + way, place.start),
        }
    }

    /// Reads or writes sectors, commanded at `begins`; where the time goes. Tells of each
    /// run of sectors that passes. Afterwards the arm is where the last one was.
    ///
    /// # Panics
    ///
    /// When there are no such sectors.
    #[inline]
    pub fn serve(&mut self, begins: Time, access: &Access, tell: impl FnMut(Passing)) -> Parts {
        self.serve_from(begins, access, &self.layout.run(access.sector), tell)
    }

    /// The same, of an access of which it is known where its first sectors are.
    ///
    /// # Panics
    ///
    /// When there are no such sectors.
    #[inline(always)]
    pub fn serve_from(
        &mut self,
        begins: Time,
        access: &Access,
        first: &Run,
        mut tell: impl FnMut(Passing),
    ) -> Parts {
        let mut parts = Parts {
            overhead: access.overhead,
            ..Parts::default()
        };
        let mut at = begins + access.overhead;
        let (mut sector, mut left) = (access.sector, access.sectors);
        while left > 0 {
            let later;
            let run = match sector == access.sector {
                true => first,
                false => {
                    later = self.layout.run(sector);
                    &later
                }
            };
            let sectors = run.sectors.min(left);
            let is_first = sector == access.sector;
            at = self.go(at, (&run.place, is_first), access.write, &mut parts);
            self.turn_to(at, run.place.start);
            let passes;
            (passes, at) = self.pass(at, (&run.place, sectors), access.write, &mut parts);
            let rewritten = (access.part_of_first && sector == access.sector)
                || (access.part_of_last && sectors == left);
            if access.write && rewritten {
                self.turn_to(at, run.place.start);
                if self.what_if.deadlines_met {
                    self.spindle = self.spindle.turned_to(at, run.place.start);
                }
                let again = at + self.spindle.until(at, run.place.start);
                let parts_of = run.place.arc * u64::from(sectors);
                let ends = again + self.spindle.passing(again, run.place.start, parts_of);
                parts.rewrite += ends - at;
                at = ends;
            }
            tell(Passing {
                sector,
                sectors,
                begins: passes,
                ends: at,
            });
            sector += u64::from(sectors);
            left -= sectors;
        }
        parts
    }

    /// Moves the arm, and books that; when it is there.
    #[inline(always)]
    fn go(
        &mut self,
        at: Time,
        (place, commanded): (&Place, bool),
        write: bool,
        parts: &mut Parts,
    ) -> Time {
        let way = self.way(place, write, commanded);
        (self.cylinder, self.head) = (place.cylinder, place.head);
        parts.seek += way.seek;
        parts.head_switch += way.head_switch;
        parts.settle += way.settle;
        at + way.total()
    }

    /// Has sectors of the present track pass, and books that; when the first one begins to
    /// pass, and when all have.
    #[inline(always)]
    fn pass(
        &self,
        at: Time,
        (place, sectors): (&Place, u32),
        write: bool,
        parts: &mut Parts,
    ) -> (Time, Time) {
        let all = place.arc * u64::from(sectors);
        if self.zero_latency[usize::from(write)] {
            let into = (self.spindle.angle(at) - place.start).0;
            let next = into / place.arc + 1;
            if into < all && next < u64::from(sectors) && self.spindle.until(at, place.start).0 > 0
            {
                return self.pass_from(at, (place, sectors), next, parts);
            }
        }
        let latency = self.spindle.until(at, place.start);
        let transfer = self.spindle.passing(at + latency, place.start, all);
        parts.latency += latency;
        parts.transfer += transfer;
        (at + latency, at + latency + transfer)
    }

    /// The same, from one in the middle of them on: a revolution from there.
    fn pass_from(
        &self,
        at: Time,
        (place, sectors): (&Place, u32),
        first: u64,
        parts: &mut Parts,
    ) -> (Time, Time) {
        let of_first = place.start + Turn(place.arc * first);
        let (mut at, mut begins) = (at, at);
        for (from, count) in [(of_first, u64::from(sectors) - first), (place.start, first)] {
            let latency = self.spindle.until(at, from);
            let transfer = self.spindle.passing(at + latency, from, place.arc * count);
            parts.latency += latency;
            parts.transfer += transfer;
            begins = at + latency;
            at = begins + transfer;
        }
        (begins, at)
    }

    /// The way to a place, where a command begins or one goes on: what goes on does not rest
    /// on its track.
    #[inline(always)]
    fn way(&self, place: &Place, write: bool, commanded: bool) -> Way {
        let distance = self.cylinder.abs_diff(place.cylinder);
        let switches = self.head != place.head;
        if distance == 0 && !switches {
            let seek = match commanded {
                true => self.same_track[usize::from(write)],
                false => Time::ZERO,
            };
            return Way {
                seek,
                ..Way::default()
            };
        }
        let seek = self.seek.between(self.cylinder, place.cylinder, write);
        let head_switch = match switches {
            true => Time(self.head_switch.0.saturating_sub(seek.0)),
            false => Time::ZERO,
        };
        let mut way = Way {
            seek,
            head_switch,
            settle: Time::ZERO,
        };
        if write && self.write_settle_ns >= 0 {
            way.settle = Time(self.write_settle_ns.unsigned_abs());
        } else if write {
            let mut less = self.write_settle_ns.unsigned_abs();
            for part in [&mut way.head_switch, &mut way.seek] {
                let taken = less.min(part.0);
                part.0 -= taken;
                less -= taken;
            }
        }
        // What a seek hid of a head switch does not come up without it.
        if self.what_if.no_seek {
            way.seek = Time::ZERO;
        }
        way
    }
}

fn number(key: &'static str, value: f64, (least, most): (f64, f64)) -> Result<(), MechanismError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(MechanismError::Number {
            key,
            value,
            least,
            most,
        }),
    }
}
