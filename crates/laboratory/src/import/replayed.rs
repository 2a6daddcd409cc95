//! A drive's trace, replayed on the modelled disk that was made of its files.

use diskperf_calibration::{Calibration, Score};
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::disk::spindle::Turn;
use diskperf_device::{Device, Drive, Operation};
use diskperf_diskspecs::phase::Think;
use diskperf_diskspecs::trace::{self, Request};
use diskperf_machine::Time;
use serde::Serialize;

/// Figures of the second half of a trace, in a closed loop: the disk of the files, that of
/// the fitted layer, and the model that the layer is from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replays {
    /// Requests of the second half.
    pub requests: usize,
    /// The modelled disk with the values of the files.
    pub filed: ReplayFigures,
    /// The same with the layer.
    pub fitted: ReplayFigures,
    /// The model that was fitted: what `reproduce real-drives` prints.
    pub model: ReplayFigures,
}

/// How far a replay is from what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayFigures {
    /// The share of requests within half a millisecond.
    pub within_half_ms_percent: f64,
    /// Root mean square of modelled less measured, request by request.
    pub rms_per_request_ms: f64,
    /// Root mean square of the distance between the distributions.
    pub demerit_ms: f64,
    /// Mean of modelled less measured.
    pub bias_ms: f64,
}

impl ReplayFigures {
    pub(super) fn of(score: &Score) -> Self {
        Self {
            within_half_ms_percent: score.within_half_ms_percent,
            rms_per_request_ms: score.rms_per_request_ms,
            demerit_ms: score.demerit_ms,
            bias_ms: score.bias_ms,
        }
    }
}

impl Replays {
    /// Of the disks of the files and of the layer.
    pub(super) fn of(
        (filed, fitted): (&DiskSpecification, &DiskSpecification),
        requests: &[Request],
        found: &Calibration,
    ) -> Self {
        let half = requests.len() / 2;
        let figures = |disk: &DiskSpecification| {
            let modelled = services_us(disk, requests, found.think);
            let measured = requests.iter().map(|request| request.service_us);
            let pairs: Vec<(f64, f64)> = measured.zip(modelled).skip(half).collect();
            ReplayFigures::of(&Score::of(&pairs))
        };
        Self {
            requests: requests.len() - half,
            filed: figures(filed),
            fitted: figures(fitted),
            model: ReplayFigures::of(&found.score),
        }
    }
}

/// The service times of requests, in a closed loop: each is issued after its pause, which is
/// counted from the modelled completion before it.
pub(super) fn services_us(
    disk: &DiskSpecification,
    requests: &[Request],
    think: Think,
) -> Vec<f64> {
    let time = |us: f64| Time((us * 1e3 + 0.5) as u64);
    // A closed loop soon turns with the platters, at whatever angle they began.
    let disk = Disk::new(disk, Turn::ZERO).expect("a specification that was checked");
    let mut drive = Drive::new(Device::Disk(Box::new(disk)));
    let one = |request: &Request| {
        if think == Think::Before {
            drive.run_for(time(request.think_us));
        }
        let operation = match request.operation {
            trace::Operation::Read => Operation::Read,
            trace::Operation::Write => Operation::Write { fua: false },
        };
        let service_us = serve(&mut drive, operation, request).millis() * 1e3;
        if think == Think::After {
            drive.run_for(time(request.think_us));
        }
        service_us
    };
    requests.iter().map(one).collect()
}

/// Serves a request, which is several commands where one does not move as much.
fn serve(drive: &mut Drive, operation: Operation, request: &Request) -> Time {
    let most = drive.device().most_bytes().unwrap_or(usize::MAX) as u64;
    let most = u32::try_from(most / u64::from(drive.device().sector_bytes())).unwrap_or(u32::MAX);
    let issued = drive.now();
    let (mut first, mut left) = (request.first_block, request.blocks);
    while left > 0 {
        let part = left.min(most);
        let served = drive.serve(operation, first, part);
        served.expect("requests that were checked against the disk");
        (first, left) = (first + u64::from(part), left - part);
    }
    drive.now() - issued
}
