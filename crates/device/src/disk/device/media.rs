//! Work of the actuator: choice of its next command or destage, and the time components of each
//! access.

use super::super::cache::{ReadAheadScope, ReadAheadTrigger};
use super::super::mechanism::AccessTimes;
use super::super::queue::QueueView;
use super::arm::DelayReason;
use super::*;
use diskperf_spans::ArmWork;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateKind {
    Commands,
    Buffer,
    Both,
}

#[derive(Clone, Copy, Debug)]
enum MediaChoice {
    Command(usize),
    Extent(usize),
}

impl Disk {
    /// Returns the time at which the drive starts to destage if no command arrives; `None` if no
    /// extent is pending.
    pub(super) fn destage_time(&self) -> Option<Time> {
        let written = self.write_back_cache.as_ref()?;
        (!written.destage_candidates().is_empty()).then(|| self.idle_since + self.destage_idle_time)
    }

    /// Gives the actuator its next work if it is free or only prefetches.
    pub(super) fn start_media_work(&mut self, now: Time, requests: &mut Requests) {
        if self.media_job.is_some() {
            return;
        }
        self.protect_joined_read_ahead(now);
        let Some(candidates) = self.candidate_kind(now) else {
            if self.cleaning_due_time().is_some_and(|at| at <= now) {
                self.start_cleaning(now, false);
            }
            return;
        };
        let free = self.interrupt_read_ahead(now);
        match self.choose_candidate(free.available_at, candidates) {
            chosen if self.awaits_buffer_space(chosen, requests) => {
                self.start_cleaning(free.available_at, true)
            }
            MediaChoice::Command(index) => {
                let of = self.queued_views.swap_remove(index);
                let queued = self.queued_commands.swap_remove(index);
                self.release_continuing(of.is_write, queued.end_sector);
                self.start_command(free, requests, (of.sector, &queued))
            }
            MediaChoice::Extent(index) => self.start_destage(free.available_at, index),
        }
    }

    /// Makes the actuator busy with some work until time `ends`.
    #[inline(always)]
    pub(super) fn begin_media_job(&mut self, ends: Time, what: MediaWork) {
        self.media_job = Some(MediaJob {
            end: ends,
            work: what,
        });
    }

    /// Tests whether the actuator has no pending work, so that a new command can bypass the queue.
    #[inline]
    pub(super) fn has_no_media_work(&self) -> bool {
        let keeps_writes = self
            .write_back_cache
            .as_ref()
            .is_some_and(|of| !of.destage_candidates().is_empty());
        let has_commands = !(self.queued_views.is_empty() && self.continuing_commands.is_empty());
        self.media_job.is_none() && !has_commands && !keeps_writes && self.shingles.is_none()
    }

    /// Stops a read-ahead, and returns the time at which the actuator can accept a command.
    #[inline(always)]
    pub(super) fn interrupt_read_ahead(&mut self, now: Time) -> ArmAvailability {
        if self.full_track_read.is_some() {
            self.note_full_track_read(now);
            self.full_track_read = None;
        }
        let Some(ahead) = &mut self.read_ahead else {
            return self.background_arm.availability(now);
        };
        let segment = ahead.segment_index;
        let committed = ahead.is_uninterruptible(now);
        if committed {
            let parts = ahead.remaining_protected_parts(&mut self.mechanism, now);
            self.background_arm.ways = [
                parts.seek_time,
                parts.head_switch_time,
                parts.rotational_latency,
            ];
        }
        let (stopped, moves) = ahead.stop_at(&mut self.mechanism, now);
        self.read_ahead = None;
        self.read_segments.extend_segment(segment, stopped.0);
        self.stop_read_ahead_at(stopped);
        ArmAvailability {
            now,
            available_at: stopped.1.max(now),
            delay_reason: match (committed, moves) {
                (true, _) => DelayReason::UninterruptibleReadAhead,
                (false, true) => DelayReason::Seek,
                (false, false) => DelayReason::MediaTransfer,
            },
        }
    }

    /// Starts a command on the actuator, which is free at the time that `free` states.
    #[inline(always)]
    pub(super) fn start_command(
        &mut self,
        free: ArmAvailability,
        requests: &mut Requests,
        (sector, queued): (u64, &QueuedCommand),
    ) {
        match requests[queued.id].operation {
            Operation::Read => self.start_read(free, requests, (sector, queued)),
            _ => self.start_write(free, requests, queued),
        }
    }

    /// Computes the end of the read-ahead if a destage waits for it, and ends the read-ahead if
    /// that time has come.
    fn protect_joined_read_ahead(&mut self, now: Time) {
        let waits = self
            .write_back_cache
            .as_ref()
            .is_some_and(|of| !of.destage_candidates().is_empty());
        let Some(ahead) = self.read_ahead.as_mut().filter(|_| waits) else {
            return;
        };
        ahead.read_to_protected_end(&mut self.mechanism);
        if ahead.limit_time <= now {
            let (limit, ends) = (ahead.limit_sector, ahead.limit_time);
            self.read_segments
                .extend_segment(ahead.segment_index, limit);
            self.read_ahead = None;
            self.end_read_ahead(limit, ends);
        }
    }

    #[inline(always)]
    fn candidate_kind(&self, now: Time) -> Option<CandidateKind> {
        let extents = self
            .write_back_cache
            .as_ref()
            .filter(|of| !of.destage_candidates().is_empty());
        let urgent = extents.is_some_and(WriteBackCache::is_above_high_water)
            || !self.writes_awaiting_buffer.is_empty()
            || !self.pending_flushes.is_empty();
        match (self.queued_views.is_empty(), extents.is_some()) {
            (false, true) if urgent => Some(CandidateKind::Both),
            (false, _) => Some(CandidateKind::Commands),
            (true, true) => {
                let still =
                    self.read_ahead.is_none() && now >= self.idle_since + self.destage_idle_time;
                (urgent || still).then_some(CandidateKind::Buffer)
            }
            (true, false) => None,
        }
    }

    #[inline(always)]
    fn choose_candidate(&mut self, now: Time, candidates: CandidateKind) -> MediaChoice {
        let mut choice = std::mem::take(&mut self.candidate_scratch);
        choice.clear();
        let extents = self
            .write_back_cache
            .as_ref()
            .map_or(&[][..], WriteBackCache::destage_candidates);
        let from = match candidates {
            CandidateKind::Commands => &self.queued_views[..],
            CandidateKind::Buffer => extents,
            CandidateKind::Both => {
                choice.extend_from_slice(&self.queued_views);
                // Nobody waits for these.
                let of_now = |of: &WaitingCommand| WaitingCommand {
                    arrival: now,
                    ..*of
                };
                choice.extend(extents.iter().map(of_now));
                &choice[..]
            }
        };
        let order = match candidates {
            CandidateKind::Buffer => QueueSpecification {
                age_limit_ms: None,
                ..self.queue_policy
            },
            CandidateKind::Commands | CandidateKind::Both => self.queue_policy,
        };
        let chosen = match from {
            [_] => None,
            _ => {
                let layout = self.mechanism.layout();
                let of_cylinders = self.queue_policy.distance_measure
                    == super::super::queue::DistanceMeasure::Cylinder;
                let view = QueueView {
                    now,
                    arm_position: match of_cylinders {
                        true => u64::from(self.mechanism.arm_cylinder()),
                        false => self.last_transfer.0.min(layout.sectors()),
                    },
                    stroke_length: match of_cylinders {
                        true => u64::from(layout.cylinder_count()),
                        false => layout.sectors(),
                    },
                    moving_inward: self.moving_inward,
                };
                let positioning = |of: &WaitingCommand| {
                    self.mechanism
                        .positioning_time(now, &of.position, of.is_write)
                };
                order.choose_command(&view, from, positioning)
            }
        };
        let index = chosen.map_or(0, |choice| choice.command_index);
        self.moving_inward = chosen.map_or(self.moving_inward, |choice| choice.moving_inward);
        self.candidate_scratch = choice;
        match candidates {
            CandidateKind::Buffer => MediaChoice::Extent(index),
            _ if index < self.queued_views.len() => MediaChoice::Command(index),
            _ => MediaChoice::Extent(index - self.queued_views.len()),
        }
    }

    #[inline(always)]
    fn start_read(
        &mut self,
        free: ArmAvailability,
        requests: &mut Requests,
        (sector, queued): (u64, &QueuedCommand),
    ) {
        let request = &mut requests[queued.id];
        let begins = free.available_at.max(queued.ready_at);
        let end = self.medium_sectors.round_up(request.end());
        let access = MediaAccess {
            first_sector: sector,
            sector_count: (end - sector) as u32,
            ..MediaAccess::default()
        };
        let mut first_at = None;
        // What is on another track begins to cross when its first sector has passed: until
        // then a slow link has nothing to carry.
        let (mut left, mut whole_by) = (access.sector_count, Time::ZERO);
        let (link_ns, per_medium) = (
            self.link.read_sector_ns(),
            self.medium_sectors.sectors_per_medium_sector(),
        );
        let run = queued.first_run.as_ref();
        let missed = self.follows_last_sectors(sector, run);
        self.classify_latency(begins, (sector, false), missed);
        let observed = self
            .observation
            .is_some()
            .then(|| self.build_access(begins, (&access, queued.cached_sectors)));
        let mut first_passes = begins;
        let parts = self.read_medium(begins, &access, run, |passing| {
            let each = match passing.sector_count - passing.early_sectors {
                1 => (passing.end - passing.start).0,
                sectors => (passing.end - passing.start).0 / u64::from(sectors),
            };
            match first_at {
                None => {
                    first_at = Some(passing.start + Time(each));
                    first_passes = passing.start;
                }
                Some(_) => {
                    let there = passing.start + Time(each);
                    let sector_ns = link_ns * per_medium as f64;
                    let others = (f64::from(left - 1) * sector_ns + 0.5) as u64;
                    whole_by = whole_by.max(there + Time(others));
                }
            }
            left -= passing.sector_count;
            if passing.early_sectors > 0 {
                // Sectors cross in order: those that passed early follow the others.
                let sector_ns = link_ns * per_medium as f64;
                let behind = f64::from(passing.early_sectors + left);
                let later = Time((behind * sector_ns + 0.5) as u64);
                whole_by = whole_by.max(passing.end + later);
            }
        });
        if let Some(observed) = observed {
            self.note_access(observed, first_passes);
        }
        let ends = begins + parts.total();
        let request = &mut requests[queued.id];
        free.book_wait(request, begins, &self.background_arm);
        self.book_parts(request, parts, missed);
        let there = match queued.cached_sectors {
            0 => first_at.unwrap_or(ends),
            _ => queued.ready_at,
        };
        let passing = MediaPassage {
            first_sector_passed: there,
            last_sector_passed: ends,
            complete_by: whole_by,
        };
        let crossing =
            self.link
                .transfer_while_reading((free.now, begins), passing, request.sectors);
        request.book_stage(Stage::BusTransfer, moment(crossing.end));
        let asked = (sector - queued.cached_sectors, end);
        let first = self.sectors_passed_before(sector, run, parts.rotational_latency);
        self.next_sectors_run = run.and_then(|run| run.run_after(access.sector_count));
        self.last_transfer = (end, ends);
        self.add_busy_times(parts);
        self.schedule_completion(crossing.end, requests, queued.id);
        self.begin_media_job(ends, MediaWork::Read { first, asked });
    }

    /// Returns the first of the preceding sectors on the same track that passed during the
    /// rotational latency. Returns the sector itself if the read cache does not keep passing
    /// sectors.
    #[inline(always)]
    fn sectors_passed_before(&self, sector: u64, run: Option<&SectorRun>, latency: Time) -> u64 {
        // What the media cache has of a track is not what passes there, and has no `run`.
        let keeps = self.specification.read_cache.keeps_passing_sectors;
        let Some(run) = run.filter(|_| keeps) else {
            return sector;
        };
        let place = &run.position;
        let each = self
            .mechanism
            .spindle()
            .turning_time(place.sector_angle)
            .0
            .max(1);
        let count = (latency.0 / each).min(u64::from(place.sector)).min(sector);
        let layout = self.mechanism.layout();
        match layout.is_in_run_before(sector, run, count as u32) {
            true => sector - count,
            false => sector,
        }
    }

    fn start_destage(&mut self, free: Time, index: usize) {
        let most = self.destage_sectors_max();
        let (layout, per_medium) = (self.mechanism.layout(), self.medium_sectors);
        let locate = |sector: u64| {
            let on_medium = per_medium.round_down(sector);
            (on_medium, layout.position_of(on_medium))
        };
        let written = self
            .write_back_cache
            .as_mut()
            .expect("a disk with a write cache");
        let now = free.max(written.earliest_destage_time(index));
        let of = written.begin_destage(index, most, locate);
        let access = self.write_access(of);
        let follows = self.follows_last_sectors(access.first_sector, None);
        self.classify_latency(now, (access.first_sector, true), follows);
        let parts = self.write_medium(now, &access);
        let ends = now + parts.total();
        let place = |disk: &Self| disk.locate_sector(access.first_sector);
        self.begin_background_work((ArmWork::Destage, now), (&access, place), (parts, follows));
        self.last_transfer = (self.to_medium_range(of).1, ends);
        self.add_busy_times(parts);
        self.begin_media_job(ends, MediaWork::Destage);
    }

    /// Tests whether the chosen work is a write that must wait for the cleaning of a band.
    fn awaits_buffer_space(&self, chosen: MediaChoice, requests: &Requests) -> bool {
        if self.shingles.is_none() {
            return false;
        }
        let of = match chosen {
            MediaChoice::Command(index) => {
                let request = &requests[self.queued_commands[index].id];
                match self.queued_views[index].is_write {
                    true => self.to_medium_range(sector_extent(request.sector, request.end())),
                    false => return false,
                }
            }
            MediaChoice::Extent(index) => {
                let written = self
                    .write_back_cache
                    .as_ref()
                    .expect("a disk with a write cache");
                let most = self.destage_sectors_max();
                self.to_medium_range(written.next_destage_extent(index, most))
            }
        };
        self.must_clean_before_write(of)
    }

    /// Returns the maximum size of one destage, in host sectors.
    fn destage_sectors_max(&self) -> u64 {
        let write = self.specification.write_cache.as_ref();
        write.map_or(1, |write| u64::from(write.destage_sectors_max))
    }

    /// Tests whether a sector directly follows those transferred last, on the same track. If such a
    /// sector does not pass at once, its command came too late.
    #[inline(always)]
    pub(super) fn follows_last_sectors(&self, sector: u64, run: Option<&SectorRun>) -> bool {
        if sector != self.last_transfer.0 {
            return false;
        }
        let at = (self.mechanism.arm_cylinder(), self.mechanism.arm_head());
        let place = match run {
            Some(run) => run.position,
            None => self.mechanism.layout().position_of(sector),
        };
        (place.cylinder, place.head) == at
    }

    /// Books the time components of an access to the stages of a request.
    #[inline(always)]
    pub(super) fn book_parts(
        &self,
        request: &mut crate::Request,
        parts: AccessTimes,
        follows: bool,
    ) {
        let mut at = Time(request.spans.marked_until().0);
        for (stage, span) in self.stage_times(parts, follows) {
            at += span;
            request.book_stage(stage, moment(at));
        }
    }

    /// Turns the platter back to a sector that directly follows the last ones, under the
    /// counterfactual assumption that deadlines are met.
    #[inline(always)]
    pub(super) fn classify_latency(
        &mut self,
        begins: Time,
        (sector, write): (u64, bool),
        follows: bool,
    ) {
        if follows && self.mechanism.what_if().meets_deadlines {
            let place = self.mechanism.layout().position_of(sector);
            // The arm rests on its track before it looks for the sector.
            let there = begins + self.mechanism.arm_move_time(&place, write);
            self.mechanism.time_since_angle(there, place.start_angle);
        }
    }

    #[inline(always)]
    pub(super) fn stage_times(&self, parts: AccessTimes, follows: bool) -> [(Stage, Time); 7] {
        let half = Time(self.mechanism.spindle().revolution_time().0 / 2);
        let latency = match follows && parts.rotational_latency > half {
            true => Stage::MissedRevolution(Deadline::ReadAhead),
            false => Stage::RotationalLatency,
        };
        [
            (Stage::Command, parts.overhead_time),
            (Stage::Seek, parts.seek_time),
            (Stage::HeadSwitch, parts.head_switch_time),
            (Stage::WriteSettle, parts.settle_time),
            (latency, parts.rotational_latency),
            (Stage::MediaTransfer, parts.transfer_time),
            (
                Stage::MissedRevolution(Deadline::PartOfSector),
                parts.rewrite_time,
            ),
        ]
    }

    pub(super) fn add_busy_times(&mut self, parts: AccessTimes) {
        self.busy_times.positioning_time +=
            parts.seek_time + parts.head_switch_time + parts.settle_time;
        self.busy_times.rotational_latency_time += parts.rotational_latency + parts.rewrite_time;
        self.busy_times.transfer_time += parts.transfer_time;
    }

    /// Ends the actuator's current work, and starts the next.
    #[inline(always)]
    pub(super) fn complete_media_job(&mut self, job: MediaJob, requests: &mut Requests) {
        let now = job.end;
        // Cleaning goes on until a command comes.
        if !matches!(job.work, MediaWork::Clean { .. }) {
            self.idle_since = now;
        }
        match job.work {
            MediaWork::Read { first, asked } => self.keep_read_sectors(now, first, asked),
            MediaWork::Write => {}
            MediaWork::Clean { takes } => {
                self.book_to_waiting_commands(requests);
                self.end_cleaning(takes);
            }
            MediaWork::Destage => {
                self.book_to_waiting_commands(requests);
                self.write_back_cache
                    .as_mut()
                    .expect("a disk with a write cache")
                    .end_destage();
                self.admit_waiting_writes(now, requests);
            }
        }
        if !self.pending_flushes.is_empty() {
            self.accept_flush(now, requests);
        } else if !self.has_no_media_work() {
            self.start_media_work(now, requests);
        }
    }

    /// Stores read sectors in the cache, and starts a read-ahead if no other command prevents it.
    #[inline(always)]
    fn keep_read_sectors(&mut self, now: Time, first: u64, asked: (u64, u64)) {
        let Some((segment, sequential)) = self.read_segments.keep_range(asked) else {
            return;
        };
        self.read_segments.extend_segment_front(segment, first);
        self.read_segments.drop_read_sectors(segment, asked.1);
        let cache = &self.specification.read_cache;
        let wanted = match cache.read_ahead_trigger {
            ReadAheadTrigger::AnyRead => true,
            ReadAheadTrigger::SequentialRead => sequential,
        };
        let least = u64::from(cache.read_ahead_sectors_min);
        let (segment_first, _) = self.read_segments.sector_range(segment);
        let limit = cache.read_ahead_end(self.mechanism.layout(), asked, segment_first);
        let limit = self.shingled_read_ahead_end(asked.1, limit);
        let others = !self.queued_views.is_empty() && least == 0;
        let whole = cache.read_ahead_scope == ReadAheadScope::WholeTrack;
        if wanted && limit > asked.1 && !others {
            let run = self.next_sectors_run;
            self.begin_read_ahead(now, segment, ((asked.1, limit), run), least);
        }
        if whole && wanted && !others {
            self.full_track_read = self.begin_full_track_read(now, segment, asked);
        }
    }

    /// Admits waiting writes to the write-back cache, oldest first, until one does not fit.
    fn admit_waiting_writes(&mut self, now: Time, requests: &mut Requests) {
        while let Some(id) = self.writes_awaiting_buffer.front().copied() {
            let request = &requests[id];
            let of = sector_extent(request.sector, request.end());
            let written = self
                .write_back_cache
                .as_ref()
                .expect("a disk with a write cache");
            if !written.has_room(of) {
                break;
            }
            self.writes_awaiting_buffer.pop_front();
            requests[id].book_stage(Stage::Destage, moment(now));
            let write = self.specification.write_cache.as_ref();
            match write.is_some_and(|write| write.repeats_overhead_after_wait) {
                true => self.decode(now, requests, id),
                false => self.transfer_into_buffer(now, requests, id),
            }
        }
    }
}
