//! Sequence of a clone's I/Os, independent of their timing. The order is that of `do_io` and
//! `fill_io_u` in fio.

use super::places::FileOffsets;
use super::service::FileService;
use super::sizes::SizeDraws;
use super::syncs::{DueSync, SyncSchedule};
use super::zoned::{IoExtent, ZonedFile};
use crate::company::WorkerGroupMember;
use crate::random::RandomDraws;
use diskperf_fio::job::{Amount, ReadWriteMode, Verification, ZoneMode};
use diskperf_fio::plan::PlannedFile;
use diskperf_fio::{Direction, JobDefinition};

const DIRECTION_STREAM: u128 = 11;

/// I/O that a clone has decided on: direction, file, offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIo {
    pub(super) direction: Direction,
    /// Index of the file among the clone's files.
    pub(super) file_index: usize,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u32,
}

/// Bytes of one of the clone's files that an I/O addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileExtent {
    /// Index of the file among the clone's files.
    pub(super) file_index: usize,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u32,
}

impl FileIo {
    pub(super) fn extent(&self) -> FileExtent {
        FileExtent {
            file_index: self.file_index,
            offset_bytes: self.offset_bytes,
            bytes: self.bytes,
        }
    }
}

/// Next step in the sequence of a clone's I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextIo {
    Io(FileIo),
    /// The pass ends. All requests in flight complete and the written blocks are read back before
    /// [another pass](IoStream::begin_pass) may follow.
    PassEnd,
}

/// Sequence of the I/Os of a clone.
#[derive(Clone, Debug)]
pub(super) struct IoStream<'a> {
    job: &'a JobDefinition,
    file_offsets: Vec<FileOffsets>,
    file_service: FileService,
    size_draws: SizeDraws,
    direction_draws: RandomDraws,
    seed: u64,
    /// I/Os until the next random offset (`rw=randread:N`).
    ios_until_random_offset: u32,
    /// Bytes done in the current zone, in whichever file.
    zone_bytes_done: u64,
    io_amounts: IoAmounts,
    sync_schedule: SyncSchedule,
    /// Files that were started again because the job runs by time or chooses files by popularity.
    restarted_files: Vec<usize>,
    /// Whether all requests in flight must complete before the last drawn I/O.
    must_drain: bool,
}

impl<'a> IoStream<'a> {
    pub(super) fn new(
        job: &'a JobDefinition,
        files: &[PlannedFile],
        (company, seed): (&WorkerGroupMember, u64),
    ) -> Self {
        let number_of = |number: usize| seed ^ (number as u64).rotate_left(48);
        let places = files.iter().enumerate();
        let zoned = |file: &PlannedFile| {
            let has_pointers = job.zones.mode == ZoneMode::WritePointers;
            let zones = has_pointers.then(|| company.zone_table_of_path(&file.path))?;
            Some(ZonedFile::new(job, file.region, zones))
        };
        let places = places.map(|(number, file)| {
            FileOffsets::new(job, file.region, number_of(number)).with_zones(zoned(file))
        });
        Self {
            job,
            file_offsets: places.collect(),
            file_service: FileService::new(job, files.len(), seed),
            size_draws: SizeDraws::new(&job.blocks, seed),
            direction_draws: RandomDraws::new(seed, DIRECTION_STREAM),
            seed,
            ios_until_random_offset: 1,
            zone_bytes_done: 0,
            io_amounts: IoAmounts::new(job, files),
            sync_schedule: SyncSchedule::new(&job.sync, files.len()),
            restarted_files: Vec::new(),
            must_drain: false,
        }
    }

    /// Reports whether all requests in flight must complete before the last drawn I/O, because that
    /// I/O resets or opens a zone. Clears the mark.
    pub(super) fn take_drain(&mut self) -> bool {
        std::mem::take(&mut self.must_drain)
    }

    /// Returns the sync that is due before the next I/O, if any, with the file to sync. As in fio,
    /// that is the next file in the service order, whichever file was written.
    pub(super) fn due_sync(&mut self) -> Option<DueSync> {
        // An engine that waits for each I/O comes to the end of a pass when it looks for
        // the next one, behind a sync; the others when the last one was issued.
        let is_over = match self.job.engine.engine.is_synchronous() {
            true => self.io_amounts.is_all_io_done(),
            false => self.io_amounts.is_pass_over(),
        };
        // Between trims and their writes fio issues none.
        if is_over || self.trims_first() {
            return None;
        }
        let operation = self.sync_schedule.due_operation()?;
        let file = self.file_service.next_file()?;
        Some(self.sync_schedule.record_sync(operation, file))
    }

    /// Returns the next I/O of a direction that was [drawn](Self::draw_direction).
    pub(super) fn next_io(&mut self, direction: Direction) -> NextIo {
        if self.io_amounts.is_pass_over() {
            return NextIo::PassEnd;
        }
        let Some(io) = self.find_io(direction) else {
            return NextIo::PassEnd;
        };
        self.io_amounts.count_io(&io);
        self.sync_schedule.count_io(&io);
        NextIo::Io(io)
    }

    /// Draws the direction of the next I/O, regardless of rates.
    pub(super) fn draw_direction(&mut self) -> Direction {
        let pattern = &self.job.pattern;
        match pattern.access {
            ReadWriteMode::Mixed | ReadWriteMode::RandomMixed => {
                match self.direction_draws.draw_below(100) < u64::from(pattern.read_percent) {
                    true => Direction::Read,
                    false => Direction::Write,
                }
            }
            _ if self.trims_first() => Direction::Trim,
            access => access.first_direction(),
        }
    }

    /// Takes one of the files that were started again since the last call. The caller drops the
    /// file's page cache if the job asks for it.
    pub(super) fn take_restarted_file(&mut self) -> Option<usize> {
        self.restarted_files.pop()
    }

    /// Resets the amounts of I/O at the end of the ramp.
    pub(super) fn reset_amounts(&mut self) {
        self.io_amounts.issued_bytes = 0;
        self.io_amounts.done_bytes = 0;
        self.io_amounts.done_io_count = 0;
    }

    /// Counts a block that was read back. As in fio, it counts as I/O of the job.
    pub(super) fn count_read_back(&mut self, bytes: u32, is_within_pass: bool) {
        self.io_amounts
            .count_read_back(u64::from(bytes), is_within_pass);
    }

    fn trims_first(&self) -> bool {
        trims_first(self.job)
    }

    fn find_io(&mut self, direction: Direction) -> Option<FileIo> {
        loop {
            let file = self.file_service.next_file()?;
            if let Some(io) = self.find_io_in_file(file, direction) {
                return Some(io);
            }
            // By time, and by popularity, a file that is done begins again at once.
            if self.io_amounts.is_time_based || self.file_service.restarts_files() {
                self.file_offsets[file].reset_pass();
                self.restarted_files.push(file);
                if let Some(io) = self.find_io_in_file(file, direction) {
                    return Some(io);
                }
            }
            self.file_service.finish_file(file);
        }
    }

    fn find_io_in_file(&mut self, file: usize, direction: Direction) -> Option<FileIo> {
        let draws = self.ios_until_random_offset <= 1;
        self.ios_until_random_offset = match draws {
            true => self.job.pattern.sequence_length,
            false => self.ios_until_random_offset - 1,
        };
        let trims_first = self.trims_first();
        let places = &mut self.file_offsets[file];
        let direction = match trims_first {
            true => places.next_trim_or_write(),
            false => places.readable_direction(direction),
        };
        places.enter_zone(direction, &mut self.zone_bytes_done);
        let found = match direction {
            Direction::Write if trims_first && places.is_random() => places.offset_after_trim(),
            _ => places.next_offset(direction, draws),
        }?;
        let region = places.file_region;
        let end_bytes = region.offset_bytes.saturating_add(region.length_bytes);
        let room_bytes = end_bytes.saturating_sub(found.offset_bytes);
        let bytes = self
            .size_draws
            .draw_block_size(direction, found.is_random, room_bytes)?;
        let at = IoExtent {
            offset_bytes: found.offset_bytes,
            bytes,
        };
        let at = places.place_in_zones(direction, at)?;
        if at.offset_bytes.checked_add(at.bytes)? > region.file_bytes {
            return None;
        }
        let bytes = places.take_offset(direction, found, at);
        self.zone_bytes_done += bytes;
        self.must_drain |= places.take_drain();
        Some(FileIo {
            direction,
            file_index: file,
            offset_bytes: at.offset_bytes,
            bytes: bytes as u32,
        })
    }

    /// Begins another pass, and returns whether there is one.
    pub(super) fn begin_pass(&mut self) -> bool {
        if !self.io_amounts.has_further_pass() {
            return false;
        }
        self.io_amounts.begin_pass();
        self.sync_schedule.begin_pass();
        if !self.job.restarts_each_pass() {
            return true;
        }
        self.file_service.reset_files();
        self.zone_bytes_done = 0;
        for places in &mut self.file_offsets {
            places.reset_pass();
        }
        if self.job.random.is_repeatable {
            for places in &mut self.file_offsets {
                places.restart_random();
            }
            self.size_draws = SizeDraws::new(&self.job.blocks, self.seed);
            self.direction_draws = RandomDraws::new(self.seed, DIRECTION_STREAM);
        }
        true
    }
}

/// Reports whether a job trims each range before it writes it (`trimwrite`).
fn trims_first(job: &JobDefinition) -> bool {
    match job.pattern.access {
        ReadWriteMode::TrimWrite | ReadWriteMode::RandomTrimWrite => true,
        ReadWriteMode::Read
        | ReadWriteMode::Write
        | ReadWriteMode::Trim
        | ReadWriteMode::RandomRead
        | ReadWriteMode::RandomWrite
        | ReadWriteMode::RandomTrim
        | ReadWriteMode::Mixed
        | ReadWriteMode::RandomMixed => false,
    }
}

/// Amount of I/O that a clone has done, and its limits.
#[derive(Clone, Debug)]
struct IoAmounts {
    is_time_based: bool,
    /// Whether ranges are trimmed before they are written. The trims count in a pass, but not
    /// towards its limit.
    trims_first: bool,
    /// Bytes to issue in one loop. `pass_limit_bytes` is the limit of one pass over the files.
    limit_bytes: u64,
    pass_limit_bytes: u64,
    loop_count_max: u64,
    io_count_max: u64,
    /// Whether passes continue after the loops, as with `io_size`.
    continues_after_loops: bool,
    /// Minimum number of remaining bytes for another pass after the loops.
    pass_bytes_min: u64,
    remaining_loops: u64,
    /// Bytes issued, without blocks that were read back. `size` and `io_size` limit this amount.
    issued_bytes: u64,
    /// Bytes done, including blocks that were read back. This amount decides whether another pass
    /// follows.
    done_bytes: u64,
    done_io_count: u64,
    pass_bytes: u64,
    pass_io_count: u64,
}

impl IoAmounts {
    fn new(job: &JobDefinition, files: &[PlannedFile]) -> Self {
        let lengths = files.iter().map(|file| file.region.length_bytes).sum();
        let size = job.target.size.and_then(Amount::bytes);
        let size_bytes = size.map_or(lengths, |size| size.min(lengths));
        let io_size = job
            .target
            .io_size
            .map(|amount| amount.resolve_bytes(size_bytes));
        // What is read back within a pass counts in it.
        let backlog_bytes = match job.verify.kind != Verification::None && job.verify.backlog > 0 {
            true if job.pattern.access.includes(Direction::Write) => size_bytes,
            _ => 0,
        };
        let loops = u64::from(job.target.loops);
        let most_ios = job.target.ios_max.unwrap_or(u64::MAX);
        let limit_bytes = io_size.unwrap_or(size_bytes);
        let trims_first = trims_first(job);
        let (trimmed_bytes, most_ios) = match trims_first {
            true => (
                limit_bytes.saturating_mul(loops),
                most_ios.saturating_mul(2),
            ),
            false => (0, most_ios),
        };
        let pass_limit_bytes = size_bytes.max(io_size.unwrap_or(0));
        Self {
            is_time_based: job.durations.is_time_based,
            trims_first,
            limit_bytes,
            pass_limit_bytes: pass_limit_bytes
                .saturating_add(backlog_bytes)
                .saturating_add(trimmed_bytes),
            loop_count_max: loops,
            io_count_max: most_ios.saturating_mul(loops),
            continues_after_loops: job.repeats_passes(),
            pass_bytes_min: job.pass_remainder_bytes_min(),
            remaining_loops: loops.saturating_sub(1),
            issued_bytes: 0,
            done_bytes: 0,
            done_io_count: 0,
            pass_bytes: 0,
            pass_io_count: 0,
        }
    }

    fn count_read_back(&mut self, bytes: u64, is_within_pass: bool) {
        self.done_bytes += bytes;
        self.done_io_count += 1;
        if is_within_pass {
            self.pass_bytes += bytes;
        }
    }

    fn count_io(&mut self, io: &FileIo) {
        if !self.trims_first || io.direction == Direction::Write {
            self.issued_bytes += u64::from(io.bytes);
        }
        self.done_bytes += u64::from(io.bytes);
        self.pass_bytes += u64::from(io.bytes);
        self.done_io_count += 1;
        self.pass_io_count += 1;
    }

    /// Reports whether the I/O of all passes is done.
    fn is_all_io_done(&self) -> bool {
        let limit_bytes = self.limit_bytes.saturating_mul(self.loop_count_max);
        !self.is_time_based
            && (self.issued_bytes >= limit_bytes || self.done_io_count >= self.io_count_max)
    }

    fn is_pass_over(&self) -> bool {
        self.is_all_io_done() || (!self.is_time_based && self.pass_bytes >= self.pass_limit_bytes)
    }

    fn begin_pass(&mut self) {
        self.remaining_loops = self.remaining_loops.saturating_sub(1);
        self.pass_bytes = 0;
        self.pass_io_count = 0;
        // fio doubles `number_ios` whenever such a pass begins.
        if self.trims_first {
            self.io_count_max = self.io_count_max.saturating_mul(2);
        }
    }

    /// Reports whether another pass follows. A pass without I/O is the last.
    fn has_further_pass(&self) -> bool {
        // Where each pass has more of them, `number_ios` does not end the loops.
        let has_all_ios = self.done_io_count >= self.io_count_max;
        let begins_with_more = self.trims_first && self.remaining_loops > 0;
        if self.pass_io_count == 0 || (has_all_ios && !begins_with_more) {
            return false;
        }
        let left_bytes = self.limit_bytes.saturating_sub(self.done_bytes);
        self.is_time_based
            || self.remaining_loops > 0
            || (self.continues_after_loops && left_bytes > 0 && left_bytes >= self.pass_bytes_min)
    }
}
