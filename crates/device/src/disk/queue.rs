//! Which request the arm is given next: pure functions over a view of the queue.

use super::layout::Place;
use diskperf_sim::Time;

/// In which order requests are served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Policy {
    /// As they came.
    #[default]
    Fcfs,
    /// The one that the arm is nearest to.
    Sstf,
    /// The nearest one in the arm's direction; back at the last one.
    Look,
    /// The nearest one inwards; from the last one to the outermost one.
    CLook,
    /// The nearest one, where this share of the stroke is added against the arm's
    /// direction (Geist and Daniel 1987): 0 is SSTF, 1 is LOOK.
    VScan {
        /// The share of the stroke.
        share: f64,
    },
    /// The one that begins to pass first.
    Sptf,
    /// The same, less so much for each second that it has waited (Jacobson and Wilkes
    /// 1991).
    AgedSptf {
        /// In ms for each second.
        ms_per_s: f64,
    },
}

/// How the queue is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct QueueSpecification {
    /// In which order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub policy: Policy,
    /// What distances are measured in, by policies that measure them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub distance: Distance,
    /// How long a request waits at the most before it is served ahead of all others, in
    /// ms; none waits without limit.
    #[cfg_attr(feature = "serde", serde(default))]
    pub age_limit_ms: Option<f64>,
}

/// What distances are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Distance {
    /// Cylinders, as the drive's own firmware knows them.
    #[default]
    Cylinder,
    /// Numbers of sectors.
    Sector,
}

/// A request that waits, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its first sector.
    pub sector: u64,
    /// Where that is.
    pub place: Place,
    /// Whether it is written.
    pub write: bool,
    /// When it came.
    pub came: Time,
    /// Its number in the order in which requests came: the older one wins ties.
    pub number: u64,
}

/// The drive, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The present moment.
    pub now: Time,
    /// The cylinder, or the sector, that distances are measured from.
    pub at: u64,
    /// How many cylinders, or sectors, there are.
    pub stroke: u64,
    /// Whether the arm last moved inwards.
    pub rising: bool,
}

/// What a policy has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its place in the queue.
    pub index: usize,
    /// Which way the arm goes on from here.
    pub rising: bool,
}

/// A request that waits by how far away it is.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    inwards: bool,
    far: u64,
}

impl QueueSpecification {
    /// The request to be served next; none of an empty queue. `positioning` says how long
    /// it takes from now on until a request begins to pass.
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

    /// The oldest request, if it has waited too long.
    fn overdue(&self, view: &View, queue: &[Waiting]) -> Option<usize> {
        let limit = Time((self.age_limit_ms? * 1e6 + 0.5) as u64);
        let oldest = least(queue, |of| of.came)?;
        (view.now - queue[oldest].came > limit).then_some(oldest)
    }

    /// Where a request is, in what distances are measured in.
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

/// The request with the least of something, the oldest of these.
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
