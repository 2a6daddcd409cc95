//! Mechanism of a disk (actuator and platters): time to reach sectors and to transfer them.

mod reading_on;

use super::layout::{Layout, LayoutError, LayoutSpecification, Place, Run};
use super::seek::{SeekCurve, SeekError, SeekSpecification};
use super::spindle::{PERIOD_NS, Spindle, Turn};
use crate::WhatIf;
use diskperf_sim::Time;

/// Specification of the actuator and platters, from a catalogue file or an importer.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct MechanismSpecification {
    /// Sector layout of the platters.
    pub layout: LayoutSpecification,
    /// Seek times of reads, and of writes unless `write_seek` is given.
    pub seek: SeekSpecification,
    /// Duration of a head switch, in ms. It overlaps a seek.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head_switch_ms: f64,
    /// Additional settle time of a write after a seek or head switch, in ms. Fitted values may be
    /// negative.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_settle_ms: f64,
    /// Measured seek times of writes; as for reads if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_seek: Option<SeekSpecification>,
    /// Additional time of a seek inwards relative to one outwards, in ms: for reads and for writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub inward_ms: [f64; 2],
    /// Delay of a command for the track that the arm is already on, in ms: for reads and for
    /// writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub same_track_ms: [f64; 2],
    /// Exact time of one revolution, in ns.
    pub period_ns: f64,
    /// Whether a read can start anywhere within its sectors on a track (zero-latency reads).
    #[cfg_attr(feature = "serde", serde(default))]
    pub zero_latency_reads: bool,
    /// Whether a write can start anywhere within its sectors on a track (zero-latency writes).
    #[cfg_attr(feature = "serde", serde(default))]
    pub zero_latency_writes: bool,
}

/// Reason why the specification of a mechanism is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum MechanismError {
    /// Error in the sector layout of the mechanism.
    Layout(LayoutError),
    /// Error in the seek times of the mechanism.
    Seek(SeekError),
    /// Error in the seek times of writes.
    WriteSeek(SeekError),
    /// A parameter of the mechanism is out of range.
    Number {
        /// Key of the parameter that is out of range.
        key: &'static str,
        /// Value that is out of range.
        value: f64,
        /// Minimum valid value of the parameter.
        least: f64,
        /// Maximum valid value of the parameter.
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

/// Access to contiguous logical sectors of the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// First sector of the access.
    pub sector: u64,
    /// Number of sectors of the access, at least one.
    pub sectors: u32,
    /// Whether the access writes its sectors.
    pub write: bool,
    /// Command overhead before the arm moves.
    pub overhead: Time,
    /// Whether a write changes only part of the first sector, which then must be read first.
    pub part_of_first: bool,
    /// Whether a write changes only part of the last sector, which then must be read first.
    pub part_of_last: bool,
}

/// Time components of an access. They add up to its duration, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Command overhead before the arm moved.
    pub overhead: Time,
    /// Time of seeks, and of delays on a track that the arm was already on.
    pub seek: Time,
    /// Time of head switches, as far as they exceeded the seek.
    pub head_switch: Time,
    /// Settle time of a write after a seek or head switch.
    pub settle: Time,
    /// Rotational latency until the sectors reached the head.
    pub latency: Time,
    /// Media transfer time, while the sectors passed the head.
    pub transfer: Time,
    /// Time of revolutions between the read of a sector and the write of a part of it.
    pub rewrite: Time,
}

impl Parts {
    /// Returns the duration of the access: the sum of all components.
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

/// Run of contiguous sectors of an access that pass a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// First of the contiguous sectors that pass the head.
    pub sector: u64,
    /// Number of contiguous sectors that pass the head.
    pub sectors: u32,
    /// Time at which the first sector begins to pass. If a zero-latency access began in the middle,
    /// the later sectors have passed already.
    pub begins: Time,
    /// Time at which all sectors have passed.
    pub ends: Time,
}

/// Time components of a movement of the arm.
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

/// State of a disk's actuator and platters.
#[derive(Clone, Debug)]
pub struct Mechanism {
    layout: Layout,
    seek: SeekCurve,
    head_switch: Time,
    write_settle_ns: i64,
    /// Delays of a read and of a write on the track that the arm is already on.
    same_track: [Time; 2],
    spindle: Spindle,
    /// Whether reads, and whether writes, can start in the middle of their sectors.
    zero_latency: [bool; 2],
    cylinder: u32,
    head: u32,
    what_if: WhatIf,
}

/// Maximum valid head switch, settle time and delay, in ms.
const LONGEST_MS: f64 = 1000.0;

impl Mechanism {
    /// Creates a mechanism with its arm at cylinder 0, head 0, and its platters at angle `phase` at
    /// time zero.
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

    /// Returns the mechanism with a counterfactual assumption applied.
    #[must_use]
    pub fn supposing(mut self, what_if: WhatIf) -> Self {
        if what_if.no_seek {
            self.same_track = [Time::ZERO; 2];
        }
        self.what_if = what_if;
        self
    }

    /// Returns the counterfactual assumption that applies to the mechanism.
    #[inline]
    pub fn supposes(&self) -> WhatIf {
        self.what_if
    }

    /// Turns the platter to the start of a sector, under the counterfactual assumption of no
    /// rotational latency.
    #[inline(always)]
    fn turn_to(&mut self, at: Time, start: Turn) {
        if self.what_if.no_rotational_latency {
            self.spindle = self.spindle.turned_to(at, start);
        }
    }

    /// Turns the platter back to the start of a sector that was just missed, under the
    /// counterfactual assumption that deadlines are met.
    #[cold]
    pub fn turn_back(&mut self, at: Time, start: Turn) {
        let half = Time(self.spindle.period().0 / 2);
        if self.spindle.until(at, start) > half {
            self.spindle = self.spindle.turned_to(at, start);
        }
    }

    /// Returns the sector layout of the platters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the seek curve of the arm.
    pub fn seek(&self) -> &SeekCurve {
        &self.seek
    }

    /// Returns the spindle, which gives the rotation.
    pub fn spindle(&self) -> &Spindle {
        &self.spindle
    }

    /// Replaces the spindle of the mechanism from now on.
    pub fn set_spindle(&mut self, spindle: Spindle) {
        self.spindle = spindle;
    }

    /// Returns the current cylinder of the arm.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Returns the head that is active now.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Moves the arm to a cylinder and head, in no time.
    pub fn place_arm(&mut self, cylinder: u32, head: u32) {
        (self.cylinder, self.head) = (cylinder, head);
    }

    /// Returns the time that the arm needs to a position (seek, head switch and settle), without
    /// rotational latency.
    pub fn way_to(&self, place: &Place, write: bool) -> Time {
        self.way(place, write, true).total()
    }

    /// Returns the positioning time from now until a sector begins to pass the head. Policies of
    /// shortest positioning time compare it.
    #[inline]
    pub fn positioning(&self, now: Time, place: &Place, write: bool) -> Time {
        let way = self.way(place, write, true).total();
        match self.what_if.no_rotational_latency {
            true => way,
            false => way + self.spindle.until(now + way, place.start),
        }
    }

    /// Reads or writes sectors from time `begins` on, and returns the time components. Calls `tell`
    /// for each run of sectors that passes the head. Leaves the arm at the last run.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[inline]
    pub fn serve(&mut self, begins: Time, access: &Access, tell: impl FnMut(Passing)) -> Parts {
        self.serve_from(begins, access, &self.layout.run(access.sector), tell)
    }

    /// Reads or writes sectors from time `begins` on, and returns the time components. Saves a
    /// lookup, because the caller knows the position of the first run. Calls `tell` for each run
    /// that passes, and leaves the arm at the last one.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
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

    /// Moves the arm, adds the time to `parts`, and returns the time of arrival.
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

    /// Lets sectors of the current track pass the head, and adds the time to `parts`. Returns the
    /// times at which the first sector begins to pass and at which all have passed.
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

    /// Lets sectors of the current track pass from one in their middle on, which takes a
    /// revolution. Returns the times at which the first sector begins to pass and at which all have
    /// passed.
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

    /// Returns the movement of the arm to a position. Only the start of a command (`commanded`) has
    /// a delay on the track that the arm is already on.
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
