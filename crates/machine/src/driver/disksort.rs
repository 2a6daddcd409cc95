//! Ordering of a drive's request queue in the driver.

use crate::hardware::Hardware;
use diskperf_device::RequestId;

/// Order of the requests that wait in a driver's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// One-way scan over the cylinders, as in the 1983 source: upwards from the request in service,
    /// then again from the lowest cylinder. Requests for the same cylinder keep their order of
    /// arrival. Reads and writes are treated alike.
    CylinderScan,
    /// Reads before writes, each sorted by cylinder. This is the paper's rule, and that of the 1980
    /// source.
    ReadsFirst,
    /// Order of arrival, as under VMS.
    ArrivalOrder,
}

/// Request in a driver's queue, with its sort keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedRequest<R = RequestId> {
    pub(crate) request: R,
    pub(crate) cylinder: u32,
    pub(crate) is_write: bool,
}

impl QueuedRequest {
    pub(crate) fn from_request(hardware: &Hardware, id: RequestId) -> Self {
        let request = &hardware.submitted_requests[id];
        Self {
            request: id,
            cylinder: hardware
                .drives
                .drive_at(request.device)
                .cylinder(request.sector),
            is_write: request.is_write(),
        }
    }
}

/// Request queue of one drive. The first request is in service.
pub(crate) type RequestQueue = Vec<QueuedRequest>;

/// Inserts a request into the queue of its drive, at its position in the given order.
pub(crate) fn enqueue_request(
    order: QueueOrder,
    queue: &mut RequestQueue,
    hardware: &Hardware,
    id: RequestId,
) {
    insert_in_order(order, queue, QueuedRequest::from_request(hardware, id));
}

/// Inserts a request into a queue at its position in the given order.
pub(crate) fn insert_in_order<R>(
    order: QueueOrder,
    queue: &mut Vec<QueuedRequest<R>>,
    request: QueuedRequest<R>,
) {
    let place = match order {
        QueueOrder::ArrivalOrder => queue.len(),
        QueueOrder::CylinderScan => scan_index(queue, &request),
        QueueOrder::ReadsFirst => reads_first_index(queue, &request),
    };
    queue.insert(place, request);
}

fn scan_index<R>(queue: &[QueuedRequest<R>], request: &QueuedRequest<R>) -> usize {
    let wanted = request.cylinder;
    let Some(head) = queue.first() else { return 0 };
    // The queue is at most two ascending runs: from the head on, and what the
    // next pass over the drive takes.
    let descent = (1..queue.len())
        .find(|place| queue[*place].cylinder < queue[*place - 1].cylinder)
        .unwrap_or(queue.len());
    let run = if wanted >= head.cylinder {
        1..descent
    } else {
        descent..queue.len()
    };
    let end = run.end;
    run.into_iter()
        .find(|place| queue[*place].cylinder > wanted)
        .unwrap_or(end)
}

fn reads_first_index<R>(queue: &[QueuedRequest<R>], request: &QueuedRequest<R>) -> usize {
    let (wanted, write) = (request.cylinder, request.is_write);
    let first_write = queue.iter().position(|queued| queued.is_write);
    let own = match (write, first_write) {
        (true, Some(first)) => first..queue.len(),
        (true, None) => queue.len()..queue.len(),
        (false, first) => 0..first.unwrap_or(queue.len()),
    };
    // Behind the entry of its own class with the largest cylinder that is not
    // above its own; the last of such.
    let before = own
        .filter(|place| queue[*place].is_write == write && queue[*place].cylinder <= wanted)
        .max_by_key(|place| (queue[*place].cylinder, *place));
    match (before, first_write) {
        (Some(place), _) => place + 1,
        // A read goes right behind the first write, which may be under way.
        (None, Some(first)) if !write => first + 1,
        (None, _) => queue.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues requests, each a cylinder and whether it writes; the order of
    /// the cylinders afterwards.
    fn check(order: QueueOrder, requests: &[(u32, bool)]) -> Vec<u32> {
        let mut queue = Vec::new();
        for (number, (cylinder, write)) in requests.iter().enumerate() {
            let request = QueuedRequest {
                request: number,
                cylinder: *cylinder,
                is_write: *write,
            };
            insert_in_order(order, &mut queue, request);
        }
        queue.iter().map(|queued| queued.cylinder).collect()
    }

    #[test]
    fn the_scan_goes_up_and_starts_again_below() {
        let writes = |cylinders: &[u32]| -> Vec<(u32, bool)> {
            cylinders.iter().map(|cylinder| (*cylinder, true)).collect()
        };
        let order = check(
            QueueOrder::CylinderScan,
            &writes(&[50, 70, 20, 60, 10, 70, 50]),
        );
        assert_eq!(order, [50, 50, 60, 70, 70, 10, 20]);
    }

    #[test]
    fn the_scan_does_not_prefer_reads() {
        let order = check(
            QueueOrder::CylinderScan,
            &[(50, true), (60, true), (70, true), (65, false)],
        );
        assert_eq!(order, [50, 60, 65, 70]);
    }

    #[test]
    fn the_papers_rule_takes_reads_past_queued_writes() {
        let order = check(
            QueueOrder::ReadsFirst,
            &[(50, true), (60, true), (70, true), (65, false)],
        );
        assert_eq!(order, [50, 65, 60, 70]);
    }

    #[test]
    fn first_come_is_first_come() {
        let order = check(
            QueueOrder::ArrivalOrder,
            &[(50, true), (10, false), (30, true)],
        );
        assert_eq!(order, [50, 10, 30]);
    }
}
