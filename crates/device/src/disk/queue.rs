//! Scheduling policies of a disk: choice of the actuator's next request, as pure functions over a
//! view of the queue.

use super::layout::SectorPosition;
use diskperf_sim::Time;

/// Scheduling policy for pending requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum QueuePolicy {
    /// First come, first served (FCFS).
    #[default]
    Fcfs,
    /// Shortest seek time first: the request nearest to the arm.
    Sstf,
    /// LOOK: the nearest request in the arm's direction; the arm reverses at the last one.
    Look,
    /// C-LOOK: the nearest request inwards; after the innermost one, the outermost one.
    CLook,
    /// V-SCAN, or V(R): the nearest request, where a share R of the stroke is added to distances
    /// against the arm's direction (Geist and Daniel 1987). A share of 0 is SSTF, 1 is LOOK.
    VScan {
        /// Share of the stroke added against the arm's direction.
        share: f64,
    },
    /// Shortest positioning time first: the request whose sectors reach the head first.
    Sptf,
    /// Aged SPTF: the shortest positioning time, less a credit for each second in the queue
    /// (Jacobson and Wilkes 1991).
    AgedSptf {
        /// Credit in ms of positioning time for each second in the queue.
        ms_per_s: f64,
    },
}

/// Specification of a disk's request scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct QueueSpecification {
    /// Policy that chooses the next request.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "policy"))]
    pub order: QueuePolicy,
    /// Unit of distance, for policies that compare distances.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "distance"))]
    pub distance_measure: DistanceMeasure,
    /// Maximum age of a request before it is served ahead of all others, in ms; no limit if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub age_limit_ms: Option<f64>,
}

/// Unit in which scheduling policies measure distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DistanceMeasure {
    /// Distance in cylinders, which the drive's own firmware knows.
    #[default]
    Cylinder,
    /// Distance as a difference of logical sector numbers.
    Sector,
}

/// Pending request, with the data that scheduling policies use.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCommand {
    /// First sector of the pending request.
    pub sector: u64,
    /// Position of the first sector on the medium.
    pub position: SectorPosition,
    /// Whether the pending request is a write.
    pub is_write: bool,
    /// Arrival time of the pending request.
    pub arrival: Time,
    /// Sequence number of the request in order of arrival. The older request wins ties.
    pub sequence_number: u64,
}

/// State of the drive, as scheduling policies see it.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Time at which the policy chooses.
    pub now: Time,
    /// Cylinder or sector from which distances are measured.
    pub arm_position: u64,
    /// Number of cylinders or sectors of the disk. V-SCAN adds a share of it to distances.
    pub stroke_length: u64,
    /// Whether the arm last moved inwards.
    pub moving_inward: bool,
}

/// Request that a scheduling policy has chosen, and the arm's direction to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueChoice {
    /// Index of the chosen request in the queue.
    pub command_index: usize,
    /// Whether the arm moves inwards to the chosen request; unchanged if it does not move.
    pub moving_inward: bool,
}

/// Direction and distance from the arm to a request.
#[derive(Clone, Copy, Debug)]
struct DistanceAhead {
    is_inward: bool,
    distance: u64,
}

impl QueueSpecification {
    /// Chooses the next request to serve; `None` for an empty queue. `positioning` returns the time
    /// from now until a request's sectors begin to pass.
    #[inline]
    pub fn choose_command(
        &self,
        view: &QueueView,
        queue: &[WaitingCommand],
        positioning: impl Fn(&WaitingCommand) -> Time,
    ) -> Option<QueueChoice> {
        let chosen = self
            .oldest_overdue(view, queue)
            .or_else(|| match self.order {
                QueuePolicy::Fcfs => index_of_min(queue, |_| 0),
                QueuePolicy::Sstf => {
                    index_of_min(queue, |of| self.distance_ahead(view, of).distance)
                }
                QueuePolicy::Look => index_of_min(queue, |of| {
                    let ahead = self.distance_ahead(view, of);
                    (
                        ahead.distance > 0 && ahead.is_inward != view.moving_inward,
                        ahead.distance,
                    )
                }),
                QueuePolicy::CLook => index_of_min(queue, |of| {
                    let at = self.queue_position(of);
                    (at < view.arm_position, at)
                }),
                QueuePolicy::VScan { share } => {
                    let against = (share * view.stroke_length as f64 + 0.5) as u64;
                    index_of_min(queue, |of| {
                        let ahead = self.distance_ahead(view, of);
                        match ahead.distance > 0 && ahead.is_inward != view.moving_inward {
                            true => ahead.distance + against,
                            false => ahead.distance,
                        }
                    })
                }
                QueuePolicy::Sptf => index_of_min(queue, |of| positioning(of).0),
                QueuePolicy::AgedSptf { ms_per_s } => {
                    // A share of the age, in parts of 2^20.
                    let weight = (ms_per_s / 1e3 * f64::from(1 << 20) + 0.5) as i128;
                    index_of_min(queue, |of| {
                        let age = i128::from((view.now - of.arrival).0);
                        (i128::from(positioning(of).0) << 20) - weight * age
                    })
                }
            });
        let index = chosen?;
        let ahead = self.distance_ahead(view, &queue[index]);
        let rising = match ahead.distance {
            0 => view.moving_inward,
            _ => ahead.is_inward,
        };
        Some(QueueChoice {
            command_index: index,
            moving_inward: rising,
        })
    }

    /// Returns the index of the oldest request if its age exceeds the limit.
    fn oldest_overdue(&self, view: &QueueView, queue: &[WaitingCommand]) -> Option<usize> {
        let limit = Time((self.age_limit_ms? * 1e6 + 0.5) as u64);
        let oldest = index_of_min(queue, |of| of.arrival)?;
        (view.now - queue[oldest].arrival > limit).then_some(oldest)
    }

    /// Returns the cylinder or first sector of a request, by the unit of distance.
    #[inline]
    pub fn queue_position(&self, of: &WaitingCommand) -> u64 {
        match self.distance_measure {
            DistanceMeasure::Cylinder => u64::from(of.position.cylinder),
            DistanceMeasure::Sector => of.sector,
        }
    }

    #[inline]
    fn distance_ahead(&self, view: &QueueView, of: &WaitingCommand) -> DistanceAhead {
        let at = self.queue_position(of);
        DistanceAhead {
            is_inward: at > view.arm_position,
            distance: at.abs_diff(view.arm_position),
        }
    }
}

/// Returns the index of the request with the smallest key. The oldest one wins ties.
#[inline]
fn index_of_min<K: Ord>(
    queue: &[WaitingCommand],
    key: impl Fn(&WaitingCommand) -> K,
) -> Option<usize> {
    let (first, others) = queue.split_first()?;
    let (mut index, mut least) = (0, (key(first), first.sequence_number));
    for (at, of) in others.iter().enumerate() {
        let found = key(of);
        if (&found, &of.sequence_number) < (&least.0, &least.1) {
            (index, least) = (at + 1, (found, of.sequence_number));
        }
    }
    Some(index)
}
