//! Time that faults add to requests. The drive does one thing at a time while it adds it.

use diskperf_sim::Time;

/// Completion times of a drive that is slower than its model.
///
/// The service time of a request is the time by which it is completed after its arrival, and after
/// the completion before it. Faults lengthen it, and later requests wait for it as they wait for
/// any request: `completion = max(completion before, arrival) + service * factor + delay`. Without
/// faults these are the completion times of the model.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// Last completion of the model.
    modelled: Time,
    /// Last completion with faults.
    completed: Time,
}

impl Pace {
    /// Returns the completion time of a request that the model completes at `due`. Calls have the
    /// order of these times.
    pub(super) fn complete(&mut self, arrived: Time, due: Time, factor: f64, delay: Time) -> Time {
        let service_ns = due.0.saturating_sub(arrived.max(self.modelled).0);
        self.modelled = self.modelled.max(due);
        let lengthened_ns = match factor {
            1.0 => service_ns,
            factor => (service_ns as f64 * factor) as u64,
        };
        self.completed = self.completed.max(arrived) + Time(lengthened_ns) + delay;
        self.completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_faults_the_times_are_those_of_the_model() {
        let mut pace = Pace::default();
        for (arrived, due) in [(0, 10), (5, 12), (6, 12), (30, 41), (31, 44)] {
            let found = pace.complete(Time(arrived), Time(due), 1.0, Time::ZERO);
            assert_eq!(found, Time(due));
        }
    }

    #[test]
    fn later_requests_wait_for_a_slow_one_until_the_drive_is_idle() {
        let mut pace = Pace::default();
        let found = [
            (0, 10, 3.0, 0),
            (0, 20, 1.0, 0),
            (25, 30, 1.0, 100),
            (500, 510, 1.0, 0),
        ]
        .map(|(arrived, due, factor, delay)| {
            pace.complete(Time(arrived), Time(due), factor, Time(delay))
        });
        assert_eq!(found, [Time(30), Time(40), Time(145), Time(510)]);
    }
}
