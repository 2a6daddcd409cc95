//! Search for the read cache rule whose hits match those of the measured drive.

use crate::places::LocatedRequest;
use crate::replay::replay_each;
use diskperf_device::disk::cache::{
    KeepAfterRead, KeepAfterWrite, LimitReference, ReadAheadScope, ReadAheadTrigger,
    ReadCacheSpecification,
};
use diskperf_device::disk::device::{AnswerSource, DiskSpecification};
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::ValidationOperation;

pub(crate) struct ReadCacheSearch<'j> {
    pub(crate) disk: &'j DiskSpecification,
    pub(crate) placed: &'j [LocatedRequest],
    pub(crate) think: ThinkPosition,
    /// Reports whether a request was too fast to have waited for the platter.
    pub(crate) is_fast: &'j dyn Fn(&LocatedRequest) -> bool,
}

/// Selected cache rule, and the range of read-ahead limits with equally few errors.
#[derive(Clone, Debug)]
pub(crate) struct ChosenReadCache {
    pub(crate) read_cache: ReadCacheSpecification,
    pub(crate) limits: (u32, u32),
}

const SEGMENT_COUNTS: [u32; 10] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 32];
const READ_AHEAD_SECTORS: [u32; 12] = [0, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Initial read-ahead of the search, in sectors.
const INITIAL_AHEAD_SECTORS: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct TrackSizes {
    segment_sectors: u32,
    track_sectors: u32,
}
/// Number of best starting rules from which the search continues.
const SEARCH_STARTS_MAX: usize = 4;
/// Longest read-ahead that is tested, in sectors beyond the best one.
const READ_AHEAD_MARGIN_SECTORS: u32 = 512;

type TriedRules = Vec<(ReadCacheSpecification, usize)>;

impl ReadCacheSearch<'_> {
    /// Counts the reads that the rule and the drive answer differently: one from the medium, the
    /// other from the buffer.
    fn count_errors(&self, tried: &mut TriedRules, rule: &ReadCacheSpecification) -> usize {
        if let Some((_, errors)) = tried.iter().find(|(other, _)| other == rule) {
            return *errors;
        }
        let disk = DiskSpecification {
            read_cache: rule.clone(),
            ..self.disk.clone()
        };
        let half_us = disk.mechanism.period_ns / 2e3;
        let mut wrong = 0;
        replay_each(&disk, self.placed, self.think, |placed, served| {
            let request = &placed.request;
            let is_wrong = match (request.operation, served.observation.answer_source) {
                (ValidationOperation::Write, _) => false,
                (_, AnswerSource::Buffer) => !(self.is_fast)(placed),
                (_, AnswerSource::Media) => (self.is_fast)(placed),
                // What has still to come may be slow or fast.
                _ => (served.service_us - request.service_us).abs() > half_us,
            };
            wrong += usize::from(is_wrong);
        });
        tried.push((rule.clone(), wrong));
        wrong
    }

    /// Finds the rule with the fewest errors. It varies one choice at a time, starting from the
    /// files' rule and from read-ahead by track and by limit, until nothing improves.
    pub(crate) fn best_rule(&self, filed: &ReadCacheSpecification, track: u32) -> ChosenReadCache {
        let is_fast_read = |one: &LocatedRequest| {
            one.request.operation == ValidationOperation::Read && (self.is_fast)(one)
        };
        if !self.placed.iter().any(is_fast_read) {
            let rule = ReadCacheSpecification {
                segments: 0,
                ..filed.clone()
            };
            return ChosenReadCache {
                read_cache: rule,
                limits: (0, 0),
            };
        }
        let sizes = TrackSizes {
            segment_sectors: filed.segment_sectors,
            track_sectors: track,
        };
        let mut tried = TriedRules::new();
        // A rule that reads ahead after the wrong reads is worse than one that does not read
        // ahead at all, so the search begins at all combinations of what decides together.
        let mut begun: Vec<(usize, ReadCacheSpecification)> = initial_rules(filed, sizes)
            .into_iter()
            .map(|start| (self.count_errors(&mut tried, &start), start))
            .collect();
        begun.sort_by_key(|begun| begun.0);
        begun.truncate(SEARCH_STARTS_MAX);
        let reached = begun
            .into_iter()
            .map(|(_, start)| self.descend(&mut tried, start, sizes));
        let best = reached.min_by_key(|reached| reached.0);
        let best = best.expect("at least the files' rule");
        self.find_limits(&mut tried, best, sizes)
    }

    fn descend(
        &self,
        tried: &mut TriedRules,
        start: ReadCacheSpecification,
        sizes: TrackSizes,
    ) -> (usize, ReadCacheSpecification) {
        let mut best = (self.count_errors(tried, &start), start);
        loop {
            let before = best.0;
            for choice in 0..neighbouring_rules(&best.1, sizes).len() {
                for rule in neighbouring_rules(&best.1, sizes).swap_remove(choice) {
                    let errors = self.count_errors(tried, &rule);
                    if errors < best.0 {
                        best = (errors, rule);
                    }
                }
            }
            if best.0 == before {
                return best;
            }
        }
    }

    /// Returns the rule with the best read-ahead limit near its own, and the range of limits with
    /// equally few errors.
    fn find_limits(
        &self,
        tried: &mut TriedRules,
        (errors, rule): (usize, ReadCacheSpecification),
        sizes: TrackSizes,
    ) -> ChosenReadCache {
        if !has_sector_limit(rule.read_ahead_scope) {
            return ChosenReadCache {
                read_cache: rule,
                limits: (0, 0),
            };
        }
        let with = |sectors: u32| {
            let mut other = rule.clone();
            set_extent(&mut other, (rule.read_ahead_scope, sectors), sizes);
            other
        };
        let mut best = (errors, rule.read_ahead_sectors_max.unwrap_or(0));
        for step in [(best.1 / 32).max(1), 1] {
            let from = best.1.saturating_sub(16 * step);
            for sectors in (0..=32).map(|at| from + at * step) {
                let errors = self.count_errors(tried, &with(sectors));
                if errors < best.0 {
                    best = (errors, sectors);
                }
            }
        }
        let mut is_as_good = |sectors: u32| self.count_errors(tried, &with(sectors)) <= best.0;
        let below = largest_good_limit(best.1, |by| is_as_good(best.1 - by));
        let above = largest_good_limit(READ_AHEAD_MARGIN_SECTORS, |by| is_as_good(best.1 + by));
        ChosenReadCache {
            read_cache: with(best.1),
            limits: (best.1 - below, best.1 + above),
        }
    }
}

/// Returns the farthest distance up to a limit for which all smaller distances are good, with few
/// tests.
fn largest_good_limit(limit: u32, mut is_good: impl FnMut(u32) -> bool) -> u32 {
    let (mut good, mut step) = (0, 1);
    while good + step <= limit && is_good(good + step) {
        good += step;
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if good + step <= limit && is_good(good + step) {
            good += step;
        }
    }
    good
}

/// Tests whether this kind of read-ahead also stops at a number of sectors.
fn has_sector_limit(read_ahead: ReadAheadScope) -> bool {
    match read_ahead {
        ReadAheadScope::Limit | ReadAheadScope::TrackEnd | ReadAheadScope::CylinderEnd => true,
        ReadAheadScope::None | ReadAheadScope::WholeTrack | ReadAheadScope::NextTrackEnd => false,
    }
}

/// Sets the extent of read-ahead of a rule. A segment has the length given in the files, and room
/// for the read-ahead and for tracks read completely.
fn set_extent(
    rule: &mut ReadCacheSpecification,
    (read_ahead, sectors): (ReadAheadScope, u32),
    sizes: TrackSizes,
) {
    rule.read_ahead_scope = match (read_ahead, sectors) {
        (ReadAheadScope::Limit, 0) => ReadAheadScope::None,
        (other, _) => other,
    };
    if has_sector_limit(read_ahead) {
        rule.read_ahead_sectors_max = Some(sectors);
        rule.limit_reference = LimitReference::RequestEnd;
    }
    let room = match read_ahead {
        ReadAheadScope::Limit | ReadAheadScope::CylinderEnd => sectors,
        ReadAheadScope::TrackEnd => sectors.min(sizes.track_sectors),
        ReadAheadScope::NextTrackEnd => 2 * sizes.track_sectors,
        ReadAheadScope::WholeTrack => sizes.track_sectors,
        ReadAheadScope::None => 0,
    };
    rule.segment_sectors = sizes.segment_sectors.max(room);
}

/// Returns the starting rules: the files' rule, and variants in the extent and trigger of
/// read-ahead, in what a segment keeps, in what a write invalidates, and in the reads that wait for
/// the read-ahead.
fn initial_rules(filed: &ReadCacheSpecification, sizes: TrackSizes) -> Vec<ReadCacheSpecification> {
    let mut all = vec![filed.clone()];
    for read_ahead in [
        ReadAheadScope::Limit,
        ReadAheadScope::TrackEnd,
        ReadAheadScope::WholeTrack,
    ] {
        for after in [ReadAheadTrigger::AnyRead, ReadAheadTrigger::SequentialRead] {
            for left in [KeepAfterRead::WholeSegment, KeepAfterRead::ReadAheadOnly] {
                for write in [KeepAfterWrite::DropsOverlapping, KeepAfterWrite::DropsAll] {
                    for joins_unread_sectors in [true, false] {
                        let mut start = ReadCacheSpecification {
                            segments: filed.segments.max(1),
                            read_ahead_trigger: after,
                            keep_after_read: left,
                            keep_after_write: write,
                            joins_unread_sectors,
                            ..filed.clone()
                        };
                        set_extent(&mut start, (read_ahead, INITIAL_AHEAD_SECTORS), sizes);
                        all.push(start);
                    }
                }
            }
        }
    }
    all
}

/// Returns the rules that differ from one rule in a single choice, grouped by choice.
fn neighbouring_rules(
    rule: &ReadCacheSpecification,
    sizes: TrackSizes,
) -> Vec<Vec<ReadCacheSpecification>> {
    let with = |change: &dyn Fn(&mut ReadCacheSpecification)| {
        let mut other = rule.clone();
        change(&mut other);
        other
    };
    let whole = [ReadAheadScope::WholeTrack, ReadAheadScope::NextTrackEnd];
    let whole = whole.map(|read_ahead| (read_ahead, 0));
    let limited = [
        ReadAheadScope::TrackEnd,
        ReadAheadScope::CylinderEnd,
        ReadAheadScope::Limit,
    ];
    let limited = limited
        .into_iter()
        .flat_map(|read_ahead| READ_AHEAD_SECTORS.map(|sectors| (read_ahead, sectors)));
    let extents = whole.into_iter().chain(limited);
    let writes = [
        (KeepAfterWrite::DropsOverlapping, false),
        (KeepAfterWrite::DropsOverlapping, true),
        (KeepAfterWrite::DropsAll, false),
        (KeepAfterWrite::DropsAll, true),
        (KeepAfterWrite::Updates, true),
    ];
    vec![
        extents
            .map(|extent| with(&|rule| set_extent(rule, extent, sizes)))
            .collect(),
        SEGMENT_COUNTS
            .map(|segments| with(&|rule| rule.segments = segments))
            .into(),
        [KeepAfterRead::WholeSegment, KeepAfterRead::ReadAheadOnly]
            .map(|after| with(&|rule| rule.keep_after_read = after))
            .into(),
        writes
            .map(|(after, keeps)| {
                with(&|rule| {
                    rule.keep_after_write = after;
                    rule.keeps_written_sectors = keeps;
                })
            })
            .into(),
        [ReadAheadTrigger::AnyRead, ReadAheadTrigger::SequentialRead]
            .map(|after| with(&|rule| rule.read_ahead_trigger = after))
            .into(),
        [false, true]
            .map(|after_hit| with(&|rule| rule.resumes_after_hit = after_hit))
            .into(),
        [false, true]
            .map(|keeps| with(&|rule| rule.keeps_passing_sectors = keeps))
            .into(),
        [false, true]
            .map(|joins| with(&|rule| rule.joins_unread_sectors = joins))
            .into(),
    ]
}
