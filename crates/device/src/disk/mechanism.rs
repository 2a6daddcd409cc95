//! Mechanism of a disk (actuator and platters): time to reach sectors and to transfer them.

mod reading_on;

use super::layout::{Layout, LayoutError, LayoutSpecification, SectorPosition, SectorRun};
use super::seek::{SeekCurve, SeekCurveError, SeekSpecification};
use super::spindle::{PERIOD_NS_RANGE, RotationAngle, Spindle};
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
    Seek(SeekCurveError),
    /// Error in the seek times of writes.
    WriteSeek(SeekCurveError),
    /// A parameter of the mechanism is out of range.
    OutOfRange {
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
            Self::OutOfRange {
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

impl From<SeekCurveError> for MechanismError {
    fn from(error: SeekCurveError) -> Self {
        Self::Seek(error)
    }
}

/// Access to contiguous logical sectors of the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaAccess {
    /// First sector of the access.
    pub first_sector: u64,
    /// Number of sectors of the access, at least one.
    pub sector_count: u32,
    /// Whether the access writes its sectors.
    pub is_write: bool,
    /// Command overhead before the arm moves.
    pub overhead: Time,
    /// Whether a write changes only part of the first sector, which then must be read first.
    pub is_first_partial: bool,
    /// Whether a write changes only part of the last sector, which then must be read first.
    pub is_last_partial: bool,
}

/// Time components of an access. They add up to its duration, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessTimes {
    /// Command overhead before the arm moved.
    pub overhead_time: Time,
    /// Time of seeks, and of delays on a track that the arm was already on.
    pub seek_time: Time,
    /// Time of head switches, as far as they exceeded the seek.
    pub head_switch_time: Time,
    /// Settle time of a write after a seek or head switch.
    pub settle_time: Time,
    /// Rotational latency until the sectors reached the head.
    pub rotational_latency: Time,
    /// Media transfer time, while the sectors passed the head.
    pub transfer_time: Time,
    /// Time of revolutions between the read of a sector and the write of a part of it.
    pub rewrite_time: Time,
}

impl AccessTimes {
    /// Returns the duration of the access: the sum of all components.
    pub fn total(&self) -> Time {
        let Self {
            overhead_time: overhead,
            seek_time: seek,
            head_switch_time: head_switch,
            settle_time: settle,
            rotational_latency: latency,
            transfer_time: transfer,
            rewrite_time: rewrite,
        } = *self;
        overhead + seek + head_switch + settle + latency + transfer + rewrite
    }
}

impl std::ops::AddAssign for AccessTimes {
    fn add_assign(&mut self, other: Self) {
        self.overhead_time += other.overhead_time;
        self.seek_time += other.seek_time;
        self.head_switch_time += other.head_switch_time;
        self.settle_time += other.settle_time;
        self.rotational_latency += other.rotational_latency;
        self.transfer_time += other.transfer_time;
        self.rewrite_time += other.rewrite_time;
    }
}

/// Run of contiguous sectors of an access that pass a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassingRun {
    /// First of the contiguous sectors that pass the head.
    pub first_sector: u64,
    /// Number of contiguous sectors that pass the head.
    pub sector_count: u32,
    /// Time at which the first sector begins to pass. If a zero-latency access began in the middle,
    /// the later sectors have passed already.
    pub start: Time,
    /// Time at which all sectors have passed.
    pub end: Time,
    /// Number of sectors at the end of the run that passed before its first one, in a zero-latency
    /// access.
    pub early_sectors: u32,
}

/// Passage of contiguous sectors of one track.
#[derive(Clone, Copy, Debug)]
struct TrackPassage {
    /// Time at which the first sector begins to pass.
    start: Time,
    /// Time at which all sectors have passed.
    end: Time,
    /// Number of sectors at the end that passed before the first one.
    early_sectors: u32,
}

/// Time components of a movement of the arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ArmMove {
    seek_time: Time,
    head_switch_time: Time,
    settle_time: Time,
}

impl ArmMove {
    #[inline]
    fn total(self) -> Time {
        self.seek_time + self.head_switch_time + self.settle_time
    }
}

/// State of a disk's actuator and platters.
#[derive(Clone, Debug)]
pub struct Mechanism {
    layout: Layout,
    seek_curve: SeekCurve,
    head_switch_time: Time,
    write_settle_ns: i64,
    /// Delays of a read and of a write on the track that the arm is already on.
    same_track: [Time; 2],
    spindle: Spindle,
    /// Whether reads, and whether writes, can start in the middle of their sectors.
    zero_latency: [bool; 2],
    arm_cylinder: u32,
    arm_head: u32,
    what_if: WhatIf,
}

/// Maximum valid head switch, settle time and delay, in ms.
const TIME_MS_MAX: f64 = 1000.0;

impl Mechanism {
    /// Creates a mechanism with its arm at cylinder 0, head 0, and its platters at angle `phase` at
    /// time zero.
    ///
    /// # Errors
    ///
    /// [`MechanismError`] when the specification contradicts itself.
    pub fn new(
        specification: &MechanismSpecification,
        phase: RotationAngle,
    ) -> Result<Self, MechanismError> {
        let of = specification;
        check_number("head_switch_ms", of.head_switch_ms, (0.0, TIME_MS_MAX))?;
        check_number(
            "write_settle_ms",
            of.write_settle_ms,
            (-TIME_MS_MAX, TIME_MS_MAX),
        )?;
        check_number(
            "period_ns",
            of.period_ns,
            (*PERIOD_NS_RANGE.start(), *PERIOD_NS_RANGE.end()),
        )?;
        let layout = Layout::new(&of.layout)?;
        let rests = ["same_track_ms", "write_same_track_ms"];
        for (key, ms) in rests.into_iter().zip(of.same_track_ms) {
            check_number(key, ms, (0.0, TIME_MS_MAX))?;
        }
        let inwards = ["seek_inward_ms", "write_seek_inward_ms"];
        for (key, ms) in inwards.into_iter().zip(of.inward_ms) {
            check_number(key, ms, (-TIME_MS_MAX, TIME_MS_MAX))?;
        }
        let curve = |of: &SeekSpecification| SeekCurve::new(of, layout.cylinder_count());
        let writes = of.write_seek.as_ref().map(curve).transpose();
        let writes = writes.map_err(MechanismError::WriteSeek)?;
        let seek = curve(&of.seek)?.with_direction(writes, of.inward_ms)?;
        Ok(Self {
            layout,
            seek_curve: seek,
            head_switch_time: Time((of.head_switch_ms * 1e6 + 0.5) as u64),
            write_settle_ns: (of.write_settle_ms * 1e6).round() as i64,
            same_track: of.same_track_ms.map(|ms| Time((ms * 1e6 + 0.5) as u64)),
            spindle: Spindle::new(of.period_ns, phase),
            zero_latency: [of.zero_latency_reads, of.zero_latency_writes],
            arm_cylinder: 0,
            arm_head: 0,
            what_if: WhatIf::default(),
        })
    }

    /// Returns the mechanism with a counterfactual assumption applied.
    #[must_use]
    pub fn with_what_if(mut self, what_if: WhatIf) -> Self {
        if what_if.no_seek {
            self.same_track = [Time::ZERO; 2];
        }
        self.what_if = what_if;
        self
    }

    /// Returns the counterfactual assumption that applies to the mechanism.
    #[inline]
    pub fn what_if(&self) -> WhatIf {
        self.what_if
    }

    /// Turns the platter to the start of a sector, under the counterfactual assumption of no
    /// rotational latency.
    #[inline(always)]
    fn time_until_angle(&mut self, at: Time, start: RotationAngle) {
        if self.what_if.no_rotational_latency {
            self.spindle = self.spindle.with_angle_at(at, start);
        }
    }

    /// Turns the platter back to the start of a sector that was just missed, under the
    /// counterfactual assumption that deadlines are met.
    #[cold]
    pub fn time_since_angle(&mut self, at: Time, start: RotationAngle) {
        let half = Time(self.spindle.revolution_time().0 / 2);
        if self.spindle.time_until(at, start) > half {
            self.spindle = self.spindle.with_angle_at(at, start);
        }
    }

    /// Returns the sector layout of the platters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the seek curve of the arm.
    pub fn seek_curve(&self) -> &SeekCurve {
        &self.seek_curve
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
    pub fn arm_cylinder(&self) -> u32 {
        self.arm_cylinder
    }

    /// Returns the head that is active now.
    pub fn arm_head(&self) -> u32 {
        self.arm_head
    }

    /// Moves the arm to a cylinder and head, in no time.
    pub fn place_arm(&mut self, cylinder: u32, head: u32) {
        (self.arm_cylinder, self.arm_head) = (cylinder, head);
    }

    /// Returns the time that the arm needs to a position (seek, head switch and settle), without
    /// rotational latency.
    pub fn arm_move_time(&self, place: &SectorPosition, write: bool) -> Time {
        self.plan_arm_move(place, write, true).total()
    }

    /// Returns the positioning time from now until a sector begins to pass the head. Policies of
    /// shortest positioning time compare it.
    #[inline]
    pub fn positioning_time(&self, now: Time, place: &SectorPosition, write: bool) -> Time {
        let way = self.plan_arm_move(place, write, true).total();
        match self.what_if.no_rotational_latency {
            true => way,
            false => way + self.spindle.time_until(now + way, place.start_angle),
        }
    }

    /// Reads or writes sectors from time `begins` on, and returns the time components. Calls `tell`
    /// for each run of sectors that passes the head. Leaves the arm at the last run.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[inline]
    pub fn access_media(
        &mut self,
        begins: Time,
        access: &MediaAccess,
        tell: impl FnMut(PassingRun),
    ) -> AccessTimes {
        self.access_media_at(
            begins,
            access,
            &self.layout.run_at(access.first_sector),
            tell,
        )
    }

    /// Reads or writes sectors from time `begins` on, and returns the time components. Saves a
    /// lookup, because the caller knows the position of the first run. Calls `tell` for each run
    /// that passes, and leaves the arm at the last one.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[inline(always)]
    pub fn access_media_at(
        &mut self,
        begins: Time,
        access: &MediaAccess,
        first: &SectorRun,
        mut tell: impl FnMut(PassingRun),
    ) -> AccessTimes {
        let mut parts = AccessTimes {
            overhead_time: access.overhead,
            ..AccessTimes::default()
        };
        let mut at = begins + access.overhead;
        let (mut sector, mut left) = (access.first_sector, access.sector_count);
        while left > 0 {
            let later;
            let run = match sector == access.first_sector {
                true => first,
                false => {
                    later = self.layout.run_at(sector);
                    &later
                }
            };
            let sectors = run.sector_count.min(left);
            let is_first = sector == access.first_sector;
            at = self.move_arm(at, (&run.position, is_first), access.is_write, &mut parts);
            self.time_until_angle(at, run.position.start_angle);
            let passage =
                self.pass_sectors(at, (&run.position, sectors), access.is_write, &mut parts);
            at = passage.end;
            let rewritten = (access.is_first_partial && sector == access.first_sector)
                || (access.is_last_partial && sectors == left);
            if access.is_write && rewritten {
                self.time_until_angle(at, run.position.start_angle);
                if self.what_if.meets_deadlines {
                    self.spindle = self.spindle.with_angle_at(at, run.position.start_angle);
                }
                let again = at + self.spindle.time_until(at, run.position.start_angle);
                let parts_of = run.position.sector_angle * u64::from(sectors);
                let ends = again
                    + self
                        .spindle
                        .passing_times(again, run.position.start_angle, parts_of);
                parts.rewrite_time += ends - at;
                at = ends;
            }
            tell(PassingRun {
                first_sector: sector,
                sector_count: sectors,
                start: passage.start,
                end: at,
                early_sectors: passage.early_sectors,
            });
            sector += u64::from(sectors);
            left -= sectors;
        }
        parts
    }

    /// Moves the arm, adds the time to `parts`, and returns the time of arrival.
    #[inline(always)]
    fn move_arm(
        &mut self,
        at: Time,
        (place, commanded): (&SectorPosition, bool),
        write: bool,
        parts: &mut AccessTimes,
    ) -> Time {
        let way = self.plan_arm_move(place, write, commanded);
        (self.arm_cylinder, self.arm_head) = (place.cylinder, place.head);
        parts.seek_time += way.seek_time;
        parts.head_switch_time += way.head_switch_time;
        parts.settle_time += way.settle_time;
        at + way.total()
    }

    /// Lets sectors of the current track pass the head, and adds the time to `parts`.
    #[inline(always)]
    fn pass_sectors(
        &self,
        at: Time,
        (place, sectors): (&SectorPosition, u32),
        write: bool,
        parts: &mut AccessTimes,
    ) -> TrackPassage {
        let all = place.sector_angle * u64::from(sectors);
        if self.zero_latency[usize::from(write)] {
            let into = (self.spindle.angle_at(at) - place.start_angle).0;
            let next = into / place.sector_angle + 1;
            if into < all
                && next < u64::from(sectors)
                && self.spindle.time_until(at, place.start_angle).0 > 0
            {
                return self.pass_sectors_at(at, (place, sectors), next, parts);
            }
        }
        let latency = self.spindle.time_until(at, place.start_angle);
        let transfer = self
            .spindle
            .passing_times(at + latency, place.start_angle, all);
        parts.rotational_latency += latency;
        parts.transfer_time += transfer;
        TrackPassage {
            start: at + latency,
            end: at + latency + transfer,
            early_sectors: 0,
        }
    }

    /// Lets sectors of the current track pass from one in their middle on, which takes a
    /// revolution.
    fn pass_sectors_at(
        &self,
        at: Time,
        (place, sectors): (&SectorPosition, u32),
        first: u64,
        parts: &mut AccessTimes,
    ) -> TrackPassage {
        let of_first = place.start_angle + RotationAngle(place.sector_angle * first);
        let (mut at, mut begins) = (at, at);
        for (from, count) in [
            (of_first, u64::from(sectors) - first),
            (place.start_angle, first),
        ] {
            let latency = self.spindle.time_until(at, from);
            let transfer =
                self.spindle
                    .passing_times(at + latency, from, place.sector_angle * count);
            parts.rotational_latency += latency;
            parts.transfer_time += transfer;
            begins = at + latency;
            at = begins + transfer;
        }
        TrackPassage {
            start: begins,
            end: at,
            early_sectors: sectors - first as u32,
        }
    }

    /// Returns the movement of the arm to a position. Only the start of a command (`commanded`) has
    /// a delay on the track that the arm is already on.
    #[inline(always)]
    fn plan_arm_move(&self, place: &SectorPosition, write: bool, commanded: bool) -> ArmMove {
        let distance = self.arm_cylinder.abs_diff(place.cylinder);
        let switches = self.arm_head != place.head;
        if distance == 0 && !switches {
            let seek = match commanded {
                true => self.same_track[usize::from(write)],
                false => Time::ZERO,
            };
            return ArmMove {
                seek_time: seek,
                ..ArmMove::default()
            };
        }
        let seek = self
            .seek_curve
            .time_between(self.arm_cylinder, place.cylinder, write);
        let head_switch = match switches {
            true => Time(self.head_switch_time.0.saturating_sub(seek.0)),
            false => Time::ZERO,
        };
        let mut way = ArmMove {
            seek_time: seek,
            head_switch_time: head_switch,
            settle_time: Time::ZERO,
        };
        if write && self.write_settle_ns >= 0 {
            way.settle_time = Time(self.write_settle_ns.unsigned_abs());
        } else if write {
            let mut less = self.write_settle_ns.unsigned_abs();
            for part in [&mut way.head_switch_time, &mut way.seek_time] {
                let taken = less.min(part.0);
                part.0 -= taken;
                less -= taken;
            }
        }
        // What a seek hid of a head switch does not come up without it.
        if self.what_if.no_seek {
            way.seek_time = Time::ZERO;
        }
        way
    }
}

fn check_number(
    key: &'static str,
    value: f64,
    (least, most): (f64, f64),
) -> Result<(), MechanismError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(MechanismError::OutOfRange {
            key,
            value,
            least,
            most,
        }),
    }
}
