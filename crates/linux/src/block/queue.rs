//! From bios to the requests that the driver issues: split, plug, merge, and flush machinery,
//! under the scheduler `none`.

use super::{Bio, BioContent, BioOperation, DeviceLimits, SECTOR_BYTES};
use crate::effect::{Effect, Step, Task};

/// Requests that a plug holds before it goes to the queue.
const PLUG_REQUESTS_MAX: usize = 32;
/// Length of a plug's first request from which a further one sends the plug to the queue.
const PLUG_FLUSH_BYTES: u64 = 128 << 10;

/// Request that the driver issues: bios merged, with the content of the first.
pub type BlockRequest = Bio;

/// Queue of one device, which turns the steps of tasks into requests.
#[derive(Debug)]
pub struct DeviceQueue<'a> {
    limits: &'a DeviceLimits,
    issued: Vec<BlockRequest>,
    plugs: Vec<TaskPlug>,
}

/// Plug of one task: requests that wait for it to finish.
#[derive(Debug)]
struct TaskPlug {
    task: Task,
    depth: u32,
    requests: Vec<BlockRequest>,
}

impl<'a> DeviceQueue<'a> {
    /// Returns an empty queue of a device.
    #[must_use]
    pub fn new(limits: &'a DeviceLimits) -> Self {
        Self {
            limits,
            issued: Vec::new(),
            plugs: Vec::new(),
        }
    }

    /// Returns the requests of `steps`, in the order of issue.
    #[must_use]
    pub fn requests(limits: &'a DeviceLimits, steps: &[Step]) -> Vec<BlockRequest> {
        let mut queue = Self::new(limits);
        for step in steps {
            queue.take(step);
        }
        queue.issued
    }

    fn take(&mut self, step: &Step) {
        match &step.effect {
            Effect::Submit(bio) => self.submit(step.task, *bio),
            Effect::PlugStart => match self.plugs.iter_mut().find(|plug| plug.task == step.task) {
                Some(plug) => plug.depth += 1,
                None => self.plugs.push(TaskPlug {
                    task: step.task,
                    depth: 1,
                    requests: Vec::new(),
                }),
            },
            Effect::PlugFinish => {
                let index = self
                    .plug_index(step.task)
                    .expect("a plug starts before it finishes");
                self.plugs[index].depth -= 1;
                if self.plugs[index].depth == 0 {
                    let plug = self.plugs.remove(index);
                    self.issued.extend(plug.requests);
                }
            }
            // A task that sleeps sends its plug to the queue first.
            Effect::Wait(_) => {
                if let Some(index) = self.plug_index(step.task) {
                    self.issued.append(&mut self.plugs[index].requests);
                }
            }
        }
    }

    fn plug_index(&self, task: Task) -> Option<usize> {
        self.plugs.iter().position(|plug| plug.task == task)
    }

    fn submit(&mut self, task: Task, bio: Bio) {
        if bio.flags.preflush || bio.flags.fua || bio.operation == BioOperation::Flush {
            self.submit_durable(bio);
            return;
        }
        let mut rest = Some(bio);
        let mut is_split = false;
        while let Some(bio) = rest {
            let (first, remainder) = split(bio, self.limits);
            is_split |= remainder.is_some();
            self.enter_plug(task, first, is_split);
            rest = remainder;
        }
    }

    fn enter_plug(&mut self, task: Task, bio: Bio, is_split: bool) {
        let Some(index) = self.plug_index(task) else {
            self.issued.push(bio);
            return;
        };
        let plug = &mut self.plugs[index].requests;
        if !is_split && let Some(last) = plug.last_mut() {
            if merge_back(last, &bio, self.limits) {
                return;
            }
            let mut front = bio;
            if merge_back(&mut front, last, self.limits) {
                *last = front;
                return;
            }
        }
        let is_long = plug
            .first()
            .is_some_and(|first| first.bytes() >= PLUG_FLUSH_BYTES);
        if plug.len() >= PLUG_REQUESTS_MAX || is_long {
            self.issued.append(plug);
        }
        plug.push(bio);
    }

    /// Issues the steps of a flush sequence, as the device's cache and FUA demand.
    fn submit_durable(&mut self, mut bio: Bio) {
        let flags = bio.flags;
        let must_flush = self.limits.has_write_cache;
        if must_flush && (flags.preflush || bio.operation == BioOperation::Flush) {
            self.issued.push(Bio::flush());
        }
        if bio.operation == BioOperation::Flush {
            return;
        }
        bio.flags.preflush = false;
        bio.flags.fua = flags.fua && must_flush && self.limits.has_fua;
        self.issued.push(bio);
        if flags.fua && must_flush && !self.limits.has_fua {
            self.issued.push(Bio::flush());
        }
    }
}

/// Splits a bio that is longer than a request may be.
fn split(bio: Bio, limits: &DeviceLimits) -> (Bio, Option<Bio>) {
    if matches!(
        bio.operation,
        BioOperation::Discard | BioOperation::WriteZeroes
    ) {
        return (bio, None);
    }
    let by_length = u64::from(limits.max_sectors_kib) * 1024 / SECTOR_BYTES;
    let sectors_per_segment = bio.sectors.div_ceil(u64::from(bio.segments.max(1)));
    let by_segments = if bio.segments > limits.segments_max {
        u64::from(limits.segments_max) * sectors_per_segment
    } else {
        u64::MAX
    };
    let sectors = by_length.min(by_segments);
    if bio.sectors <= sectors {
        return (bio, None);
    }
    let segments = u32::try_from(sectors / sectors_per_segment).expect("fewer than the bio's");
    let first = Bio {
        sectors,
        segments: segments.max(1),
        ..bio
    };
    let content = match bio.content {
        BioContent::Data { file, offset } => BioContent::Data {
            file,
            offset: offset + sectors * SECTOR_BYTES,
        },
        other => other,
    };
    let rest = Bio {
        content,
        sector: bio.sector + sectors,
        sectors: bio.sectors - sectors,
        segments: bio.segments.saturating_sub(segments).max(1),
        ..bio
    };
    (first, Some(rest))
}

/// Appends `next` to `request` if both are one operation on adjacent sectors within the limits.
fn merge_back(request: &mut BlockRequest, next: &Bio, limits: &DeviceLimits) -> bool {
    let fits = request.operation == next.operation
        && request.flags == next.flags
        && request.end_sector() == next.sector
        && request.bytes() + next.bytes() <= u64::from(limits.max_sectors_kib) * 1024
        && request.segments + next.segments <= limits.segments_max
        && matches!(request.operation, BioOperation::Read | BioOperation::Write);
    if fits {
        request.sectors += next.sectors;
        request.segments += next.segments;
    }
    fits
}
