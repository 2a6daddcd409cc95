//! The part of the rule that explains a wait for a request: who asked for it, its stages, and the
//! worker of a loop device.

use crate::activities::WorkItem;
use crate::chain::Purpose;
use crate::context::Origin;
use crate::event::FileIdentity;
use crate::history::LOOP_FUNCTION_PREFIX;
use crate::identity::{KernelDevice, RequestOperation};
use crate::requests::{BioLife, RequestIndex, RequestLife};
use crate::rule::{DEPTH_MAX, Explained, Explainer};
use crate::segments::{RequestSegment, list_segments};
use diskperf_spans::{Nanoseconds, Stage};

/// Function that dispatches bios that their cgroup's limit held back.
const THROTTLE_FUNCTION: &str = "blk_throtl_dispatch_work_fn";

/// Internal file system that holds the pages of block devices.
const BLOCK_DEVICE_PAGES: KernelDevice = KernelDevice::from_major_minor(0, 3);

impl<'h> Explainer<'h> {
    /// Explains a time by the stages of a request.
    pub(crate) fn explain_request(&mut self, index: RequestIndex, part: Explained) {
        let history = self.history;
        let request = &history.requests[index.0];
        let purpose = self.find_purpose(request);
        let part = Explained {
            purpose: part
                .purpose
                .filter(|_| request.flags.operation != RequestOperation::Read),
            ..part
        };
        let device = request.extent.device;
        let mut at = part.period.start;
        if let Some(bio) = request.bios.first().map(|bio| &history.bios[*bio]) {
            let before = part.within(at, bio.queued_at);
            self.explain_before_arrival(bio, before, (purpose, device));
            at = before.period.end;
        }
        for segment in list_segments(history, index) {
            let inside = part.within(at, segment.end);
            at = inside.period.end;
            self.explain_segment(&segment, inside, (purpose, device));
        }
        let rest = part.within(at, part.period.end);
        let link = (Stage::Completion, purpose);
        self.book_link(rest, link, (Some(device), None));
    }

    /// Explains the time before a bio arrives at the block layer.
    fn explain_before_arrival(
        &mut self,
        bio: &BioLife,
        before: Explained,
        (purpose, device): (Purpose, KernelDevice),
    ) {
        if before.is_empty() {
            return;
        }
        if self.is_throttled(bio) {
            let link = (Stage::CgroupThrottle, purpose);
            self.book_link(before, link, (Some(device), None));
            return;
        }
        self.depth += 1;
        match self.depth < DEPTH_MAX {
            true => self.explain_origin(bio.queued_by, before, purpose),
            false => self.book(before, Stage::HandOver, purpose),
        }
        self.depth -= 1;
    }

    pub(crate) fn is_throttled(&self, bio: &BioLife) -> bool {
        let Origin::Thread {
            work: Some(work), ..
        } = bio.queued_by
        else {
            return false;
        };
        let function = self.history.work_items[work].function;
        let name = self.history.functions.get(&function);
        name.is_some_and(|name| name.starts_with(THROTTLE_FUNCTION))
    }

    fn explain_segment(
        &mut self,
        segment: &RequestSegment,
        part: Explained,
        (purpose, device): (Purpose, KernelDevice),
    ) {
        if part.is_empty() {
            return;
        }
        let served = match segment.served {
            Some(served) if self.history.loop_disks.contains(&device) => served,
            _ => {
                self.book_link(part, (segment.stage, purpose), (Some(device), None));
                return;
            }
        };
        let inner = Explained {
            purpose: Some(part.purpose.unwrap_or(purpose)),
            ..part
        };
        let server = &self.history.requests[served.0];
        if !self.explain_loop_service(server, segment.start, inner) {
            self.book_link(inner, (segment.stage, purpose), (Some(device), None));
        }
    }

    /// Explains the service of a loop device's request by its worker, or by the request to the
    /// device below; returns `false` if neither is known.
    fn explain_loop_service(
        &mut self,
        served: &RequestLife,
        issued_at: Nanoseconds,
        part: Explained,
    ) -> bool {
        let history = self.history;
        let by = served.completed_by.filter(|by| by.time >= issued_at);
        if let Some(by) = by
            && let Origin::Completion(lower) = by.origin
            && self.depth < DEPTH_MAX
            && history.requests[lower.0].extent.device != served.extent.device
        {
            self.depth += 1;
            self.explain_request(lower, part);
            self.depth -= 1;
            return true;
        }
        let device = served.extent.device;
        let Some((item, ended_at)) = self.find_loop_item(served, issued_at) else {
            return false;
        };
        let queued = item.queued.map_or(issued_at, |queued| queued.time);
        let waiting = part.within(part.period.start, item.period.start);
        // Queued before: the worker was still busy with earlier requests of its item.
        if queued < item.period.start {
            let link = (Stage::WorkQueueWait, Purpose::Worker);
            self.book_link(waiting, link, (Some(device), Some(item.function)));
        } else {
            self.follow(item.thread, waiting, Purpose::Worker);
        }
        let serving = part.within(waiting.period.end, ended_at);
        self.follow(item.thread, serving, Purpose::Worker);
        let rest = part.within(serving.period.end, part.period.end);
        self.book_link(
            rest,
            (Stage::Completion, Purpose::Worker),
            (Some(device), None),
        );
        true
    }

    /// Returns the work item that served a request of a loop device, with the time at which it
    /// handed the request back.
    fn find_loop_item(
        &self,
        served: &RequestLife,
        issued_at: Nanoseconds,
    ) -> Option<(&'h WorkItem, Nanoseconds)> {
        let history = self.history;
        let completed_at = served.last_completion()?;
        if let Some(by) = served.completed_by.filter(|by| by.time >= issued_at)
            && let Origin::Thread {
                work: Some(work), ..
            } = by.origin
        {
            let item = &history.work_items[work];
            let name = history.functions.get(&item.function);
            if name.is_some_and(|name| name.starts_with(LOOP_FUNCTION_PREFIX)) {
                return Some((item, by.time));
            }
        }
        let works = history.loop_work.get(&served.extent.device)?;
        let end = history
            .work_items
            .partition_point(|item| item.period.start < completed_at);
        let mut items = history.work_items[..end].iter().rev();
        let item = items.find(|item| works.contains(&item.work))?;
        (item.period.end > issued_at).then_some((item, completed_at))
    }

    fn find_purpose(&self, request: &RequestLife) -> Purpose {
        let Some(bio) = request.bios.first().map(|bio| &self.history.bios[*bio]) else {
            return match request.is_flush() {
                true => Purpose::Flush,
                false if request.flags.operation == RequestOperation::Read => Purpose::Read,
                false => Purpose::Data,
            };
        };
        let flags = bio.flags;
        let is_page_of_device = |file: &FileIdentity| file.device == BLOCK_DEVICE_PAGES;
        let is_log = self.is_by_journal(bio);
        match flags.operation {
            RequestOperation::Read => Purpose::Read,
            _ if flags.is_preflush && bio.extent.bytes == 0 => Purpose::Flush,
            _ if is_log && (flags.is_preflush || flags.is_fua) => Purpose::CommitBlock,
            _ if is_log && bio.file.as_ref().is_none_or(is_page_of_device) => Purpose::LogBlocks,
            _ if flags.is_metadata && (flags.is_preflush || flags.is_fua) => Purpose::LogBlocks,
            _ if flags.is_metadata || bio.file.as_ref().is_some_and(is_page_of_device) => {
                Purpose::Metadata
            }
            _ => Purpose::Data,
        }
    }

    /// Reports whether a journal's thread queued the bio during a commit.
    fn is_by_journal(&self, bio: &BioLife) -> bool {
        let Origin::Thread { thread, .. } = bio.queued_by else {
            return false;
        };
        let commits = &self.history.commits;
        let begun = commits.partition_point(|commit| commit.started_at() <= bio.queued_at);
        let mut own = commits[..begun].iter().rev();
        let latest = own.find(|commit| commit.thread == thread);
        latest.is_some_and(|commit| commit.ended_at().is_none_or(|end| end >= bio.queued_at))
    }
}
