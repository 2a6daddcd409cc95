//! The order of a drive's queue.

use crate::kernel::buffers::{BufferId, Buffers};

/// How a driver orders what waits for a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// The 1983 source: a one-way scan over cylinders, upwards from the
    /// request that is being served, then on from the lowest; equal cylinders
    /// as they came. Reads and writes alike.
    Scan,
    /// The paper's rule, which is that of the 1980 source: reads before
    /// writes, each by cylinder.
    ReadsFirst,
    /// As they came, as under VMS.
    Arrival,
}

/// What a queue holds: the first is being served.
pub(crate) type Queue = Vec<BufferId>;

/// Puts a request where it belongs. `is_write` tells of each buffer which way
/// it goes.
pub(crate) fn insert(
    order: QueueOrder,
    queue: &mut Queue,
    buffers: &Buffers,
    id: BufferId,
    is_write: impl Fn(BufferId) -> bool,
) {
    let cylinder = |id: BufferId| buffers.all[id.0 as usize].cylinder;
    let place = match order {
        QueueOrder::Arrival => queue.len(),
        QueueOrder::Scan => scan_place(queue, cylinder, id),
        QueueOrder::ReadsFirst => reads_first_place(queue, cylinder, &is_write, id),
    };
    queue.insert(place, id);
}

fn scan_place(queue: &[BufferId], cylinder: impl Fn(BufferId) -> u32, id: BufferId) -> usize {
    let wanted = cylinder(id);
    let Some(head) = queue.first() else { return 0 };
    // The queue is at most two ascending runs: from the head on, and what the
    // next pass over the drive takes.
    let descent = (1..queue.len())
        .find(|place| cylinder(queue[*place]) < cylinder(queue[*place - 1]))
        .unwrap_or(queue.len());
    let run = if wanted >= cylinder(*head) {
        1..descent
    } else {
        descent..queue.len()
    };
    let end = run.end;
    run.into_iter()
        .find(|place| cylinder(queue[*place]) > wanted)
        .unwrap_or(end)
}

fn reads_first_place(
    queue: &[BufferId],
    cylinder: impl Fn(BufferId) -> u32,
    is_write: &impl Fn(BufferId) -> bool,
    id: BufferId,
) -> usize {
    let (wanted, write) = (cylinder(id), is_write(id));
    let first_write = (0..queue.len()).find(|place| is_write(queue[*place]));
    let own = match (write, first_write) {
        (true, Some(first)) => first..queue.len(),
        (true, None) => queue.len()..queue.len(),
        (false, first) => 0..first.unwrap_or(queue.len()),
    };
    // Behind the entry of its own class with the largest cylinder that is not
    // above its own; the last of such.
    let before = own
        .filter(|place| is_write(queue[*place]) == write && cylinder(queue[*place]) <= wanted)
        .max_by_key(|place| (cylinder(queue[*place]), *place));
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
        let mut buffers = Buffers::new(requests.len() as u32, 64 << 10, 8192);
        let mut queue = Queue::new();
        for (number, (cylinder, _)) in requests.iter().enumerate() {
            buffers.all[number].cylinder = *cylinder;
        }
        for number in 0..requests.len() {
            let is_write = |id: BufferId| requests[id.0 as usize].1;
            insert(
                order,
                &mut queue,
                &buffers,
                BufferId(number as u32),
                is_write,
            );
        }
        queue
            .iter()
            .map(|id| buffers.all[id.0 as usize].cylinder)
            .collect()
    }

    #[test]
    fn the_scan_goes_up_and_starts_again_below() {
        let writes = |cylinders: &[u32]| -> Vec<(u32, bool)> {
            cylinders.iter().map(|cylinder| (*cylinder, true)).collect()
        };
        let order = check(QueueOrder::Scan, &writes(&[50, 70, 20, 60, 10, 70, 50]));
        assert_eq!(order, [50, 50, 60, 70, 70, 10, 20]);
    }

    #[test]
    fn the_scan_does_not_prefer_reads() {
        let order = check(
            QueueOrder::Scan,
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
        let order = check(QueueOrder::Arrival, &[(50, true), (10, false), (30, true)]);
        assert_eq!(order, [50, 10, 30]);
    }
}
