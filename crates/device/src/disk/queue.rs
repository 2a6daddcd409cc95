//! Scheduling policies of a disk: choice of the actuator's next request, as pure functions over a
//! view of the queue.

use super::layout::Place;
use diskperf_sim::Time;

/// Scheduling policy for pending requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Policy {
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
    pub policy: Policy,
    /// Unit of distance, for policies that compare distances.
    #[cfg_attr(feature = "serde", serde(default))]
    pub distance: Distance,
    /// Maximum age of a request before it is served ahead of all others, in ms; no limit if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub age_limit_ms: Option<f64>,
}

/// Unit in which scheduling policies measure distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Distance {
    /// Distance in cylinders, which the drive's own firmware knows.
    #[default]
    Cylinder,
    /// Distance as a difference of logical sector numbers.
    Sector,
}

/// Pending request, with the data that scheduling policies use.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// First sector of the pending request.
    pub sector: u64,
    /// Position of the first sector on the medium.
    pub place: Place,
    /// Whether the pending request is a write.
    pub write: bool,
    /// Arrival time of the pending request.
    pub came: Time,
    /// Sequence number of the request in order of arrival. The older request wins ties.
    pub number: u64,
}

/// State of the drive, as scheduling policies see it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Time at which the policy chooses.
    pub now: Time,
    /// Cylinder or sector from which distances are measured.
    pub at: u64,
    /// Number of cylinders or sectors of the disk. V-SCAN adds a share of it to distances.
    pub stroke: u64,
    /// Whether the arm last moved inwards.
    pub rising: bool,
}

/// Request that a scheduling policy has chosen, and the arm's direction to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the chosen request in the queue.
    pub index: usize,
    /// Whether the arm moves inwards to the chosen request; unchanged if it does not move.
    pub rising: bool,
}

/// Direction and distance from the arm to a request.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    inwards: bool,
    far: u64,
}

impl QueueSpecification {
    /// Chooses the next request to serve; `None` for an empty queue. `positioning` returns the time
    /// from now until a request's sectors begin to pass.
    #[inline]
    pub fn choose(
        &self,
        view: &View,
        queue: &[Waiting],
        positioning: impl Fn(&Waiting) -> Time,
    ) -> Option<Choice> {
        let chosen = self.overdue(view, queue).or_else(|| match self.policy {
            Policy::Fcfs => least(queue, |_| 0),
            Policy::Sstf => least(queue, |of| self.ahead(view, of).far),
            Policy::Look => least(queue, |of| {
                let ahead = self.ahead(view, of);
                (ahead.far > 0 && ahead.inwards != view.rising, ahead.far)
            }),
            Policy::CLook => least(queue, |of| {
                let at = self.position(of);
                (at < view.at, at)
            }),
            Policy::VScan { share } => {
                let against = (share * view.stroke as f64 + 0.5) as u64;
                least(queue, |of| {
                    let ahead = self.ahead(view, of);
                    match ahead.far > 0 && ahead.inwards != view.rising {
                        true => ahead.far + against,
                        false => ahead.far,
                    }
                })
            }
            Policy::Sptf => least(queue, |of| positioning(of).0),
            Policy::AgedSptf { ms_per_s } => {
                // A share of the age, in parts of 2^20.
                let weight = (ms_per_s / 1e3 * f64::from(1 << 20) + 0.5) as i128;
                least(queue, |of| {
                    let age = i128::from((view.now - of.came).0);
                    (i128::from(positioning(of).0) << 20) - weight * age
                })
            }
        });
        let index = chosen?;
        let ahead = self.ahead(view, &queue[index]);
        let rising = match ahead.far {
            0 => view.rising,
            _ => ahead.inwards,
        };
        Some(Choice { index, rising })
    }

    /// Returns the index of the oldest request if its age exceeds the limit.
    fn overdue(&self, view: &View, queue: &[Waiting]) -> Option<usize> {
        let limit = Time((self.age_limit_ms? * 1e6 + 0.5) as u64);
        let oldest = least(queue, |of| of.came)?;
        (view.now - queue[oldest].came > limit).then_some(oldest)
    }

    /// Returns the cylinder or first sector of a request, by the unit of distance.
    #[inline]
    pub fn position(&self, of: &Waiting) -> u64 {
        match self.distance {
            Distance::Cylinder => u64::from(of.place.cylinder),
            Distance::Sector => of.sector,
        }
    }

    #[inline]
    fn ahead(&self, view: &View, of: &Waiting) -> Ahead {
        let at = self.position(of);
        Ahead {
            inwards: at > view.at,
            far: at.abs_diff(view.at),
        }
    }
}

/// Returns the index of the request with the smallest key. The oldest one wins ties.
#[inline]
fn least<K: Ord>(queue: &[Waiting], key: impl Fn(&Waiting) -> K) -> Option<usize> {
    let (first, others) = queue.split_first()?;
    let (mut index, mut least) = (0, (key(first), first.number));
    for (at, of) in others.iter().enumerate() {
        let found = key(of);
        if (&found, &of.number) < (&least.0, &least.1) {
            (index, least) = (at + 1, (found, of.number));
        }
    }
    Some(index)
}
