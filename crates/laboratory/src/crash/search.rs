//! Search for cuts that lose something, and for the smallest loss that suffices.

use super::check::{Checker, Verdict};
use super::disks::lock;
use super::kept::KeptTest;
use super::{
    CrashObserver, CrashOptions, CrashReport, CutMoment, CutStep, FileSystemFailure, Loss,
    LostRequest, NumberedRequest, SavingFlush,
};
use crate::LaboratoryError;
use diskperf_crash::{Cut, Entry, Fate, Log, Mark, minimise};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Checks that the search for the smallest loss makes at most, for each of its two parts.
const MINIMISING_CHECKS_MAX: usize = 150;

/// Checks all cuts, and examines the first one that fails.
pub(super) fn search<C: Checker>(
    log: &Arc<Log>,
    options: &CrashOptions,
    slots: &[C],
    kept: &mut Option<KeptTest>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let positions = options.instants.positions(log, options.seed);
    let cuts = positions
        .iter()
        .flat_map(|&position| options.policy.cuts(log, position, options.seed));
    let cuts: Vec<Cut> = cuts.collect();
    let verdicts = check_all(log, &cuts, slots, kept, stop, observer)?;
    let mut report = CrashReport {
        change_count: log.change_count(),
        flush_count: log.flush_count(),
        mark_count: log.marks.len(),
        instant_count: positions.len(),
        cut_count: cuts.len(),
        ..CrashReport::default()
    };
    for (cut, verdict) in cuts.iter().zip(verdicts) {
        let moment = || describe_moment(log, cut.position, &slots[0]);
        match verdict {
            Verdict::Good => {}
            Verdict::Damaged(output) => report.fsck_failures.push(FileSystemFailure {
                cut: moment(),
                output,
            }),
            Verdict::Lost(output) => {
                let loss = match report.lost.is_empty() {
                    true => examine(log, cut, output, &slots[0], stop)?,
                    false => Loss {
                        cut: moment(),
                        mark: None,
                        requests_before: None,
                        kept_requests: Vec::new(),
                        would_have_saved: None,
                        output,
                    },
                };
                report.lost.push(loss);
            }
        }
    }
    Ok(report)
}

/// Verdicts so far, by number of the cut, with their count and that of the failures among them.
struct Verdicts<'k> {
    found: Vec<Option<Verdict>>,
    checked_count: usize,
    failure_count: usize,
    error: Option<LaboratoryError>,
    kept: Option<&'k mut KeptTest>,
}

impl<'k> Verdicts<'k> {
    /// Creates the verdicts of as many cuts, with those of an interrupted test.
    fn begin(cut_count: usize, kept: &'k mut Option<KeptTest>) -> Self {
        let mut verdicts = Self {
            found: vec![None; cut_count],
            checked_count: 0,
            failure_count: 0,
            error: None,
            kept: None,
        };
        for (number, verdict) in kept.iter().flat_map(KeptTest::verdicts) {
            if *number < cut_count {
                verdicts.insert(*number, verdict.clone());
            }
        }
        verdicts.kept = kept.as_mut();
        verdicts
    }

    fn unchecked(&self) -> impl Iterator<Item = usize> {
        let found = self.found.iter().enumerate();
        found.filter_map(|(number, verdict)| verdict.is_none().then_some(number))
    }

    fn insert(&mut self, number: usize, verdict: Verdict) {
        self.checked_count += 1;
        self.failure_count += usize::from(verdict != Verdict::Good);
        self.found[number] = Some(verdict);
    }

    fn add(&mut self, number: usize, verdict: Verdict) -> Result<(), LaboratoryError> {
        if let Some(kept) = &mut self.kept {
            kept.add(number, &verdict)?;
        }
        self.insert(number, verdict);
        Ok(())
    }
}

fn check_all<C: Checker>(
    log: &Arc<Log>,
    cuts: &[Cut],
    slots: &[C],
    kept: &mut Option<KeptTest>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<Vec<Verdict>, LaboratoryError> {
    let verdicts = Verdicts::begin(cuts.len(), kept);
    let unchecked: Vec<usize> = verdicts.unchecked().collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(verdicts);
    let observer = Mutex::new(observer);
    let work = |slot: &C| {
        loop {
            let turn = next.fetch_add(1, Ordering::SeqCst);
            let Some(&number) = unchecked.get(turn) else {
                return;
            };
            let cut = &cuts[number];
            let verdict = match stop.load(Ordering::SeqCst) {
                true => Err(LaboratoryError::Interrupted),
                false => slot.check(log, cut, log.marks_before(cut.position), stop),
            };
            let mut verdicts = lock(&verdicts);
            if let Err(error) = verdict.and_then(|verdict| verdicts.add(number, verdict)) {
                verdicts.error.get_or_insert(error);
                next.store(cuts.len(), Ordering::SeqCst);
                return;
            }
            let (checked, failures) = (verdicts.checked_count, verdicts.failure_count);
            lock(&observer).checked(checked, cuts.len(), failures);
        }
    };
    thread::scope(|scope| {
        for slot in slots {
            scope.spawn(|| work(slot));
        }
    });
    let verdicts = verdicts
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match verdicts.error {
        Some(error) => Err(error),
        None => Ok(verdicts.found.into_iter().flatten().collect()),
    }
}

/// Cut with the same instant that keeps all writes at risk but `lost`, which have the fates of
/// the given cut.
fn losing(log: &Log, cut: &Cut, lost: &[usize]) -> Cut {
    let lost: BTreeSet<usize> = lost.iter().copied().collect();
    let at_risk = log.at_risk(cut.position).into_iter();
    let fates = at_risk.map(|request| match lost.contains(&request) {
        true => (request, cut.fate(request).clone()),
        false => (request, Fate::Kept),
    });
    Cut {
        position: cut.position,
        fates: fates.filter(|(_, fate)| *fate != Fate::Lost).collect(),
    }
}

/// Cut with the same instant that loses all writes at risk but `kept`.
fn keeping(position: usize, kept: &[usize]) -> Cut {
    let fates = kept.iter().map(|request| (*request, Fate::Kept));
    Cut {
        position,
        fates: fates.collect(),
    }
}

/// Search for the cause of a loss, by further checks on one slot.
struct Examination<'a> {
    log: &'a Arc<Log>,
    slot: &'a dyn Checker,
    stop: &'a AtomicBool,
    /// Output of the last check that failed.
    output: String,
}

impl Examination<'_> {
    fn fails(&mut self, cut: &Cut, marks: &[Mark]) -> Result<bool, LaboratoryError> {
        Ok(match self.slot.check(self.log, cut, marks, self.stop)? {
            Verdict::Lost(output) => {
                self.output = output;
                true
            }
            Verdict::Good | Verdict::Damaged(_) => false,
        })
    }

    /// Finds the fewest lost writes that suffice while all others are kept. A lost write says
    /// more than a torn one, and takes its place where it can.
    fn smallest_loss(&mut self, cut: &Cut) -> Result<(Vec<usize>, Cut), LaboratoryError> {
        let log = self.log;
        let marks = log.marks_before(cut.position);
        let lost = minimise(&cut.lost(log), MINIMISING_CHECKS_MAX, |part| {
            self.fails(&losing(log, cut, part), marks)
        })?;
        let mut smallest = losing(log, cut, &lost);
        for request in &lost {
            let mut simpler = smallest.clone();
            if simpler.fates.remove(request).is_some() && self.fails(&simpler, marks)? {
                smallest = simpler;
            }
        }
        Ok((lost, smallest))
    }

    /// Finds the fewest kept writes that suffice while all others are lost. None are needed
    /// where a loss is a torn write, or no loss at all.
    fn smallest_kept(
        &mut self,
        smallest: &Cut,
        lost: &[usize],
    ) -> Result<Vec<usize>, LaboratoryError> {
        let position = smallest.position;
        let is_whole = |request: &usize| *smallest.fate(*request) == Fate::Lost;
        if lost.is_empty() || !lost.iter().all(is_whole) {
            return Ok(Vec::new());
        }
        let mut others = self.log.at_risk(position);
        others.retain(|request| !lost.contains(request));
        let marks = self.log.marks_before(position);
        minimise(&others, MINIMISING_CHECKS_MAX, |part| {
            self.fails(&keeping(position, part), marks)
        })
    }

    /// Finds the first mark without which the check passes; `None` if it fails without any.
    fn first_lost_mark(&mut self, cut: &Cut) -> Result<Option<Mark>, LaboratoryError> {
        let marks = self.log.marks_before(cut.position);
        let (mut passing, mut failing) = (0, marks.len());
        if failing == 0 || self.fails(cut, &[])? {
            return Ok(None);
        }
        while failing - passing > 1 {
            let middle = usize::midpoint(passing, failing);
            match self.fails(cut, &marks[..middle])? {
                true => failing = middle,
                false => passing = middle,
            }
        }
        Ok(marks.get(failing - 1).cloned())
    }

    /// Reports whether a mark was made before its data was sent to the drive: it is lost with
    /// all writes kept that the drive had by then. Else later writes spoil what was durable.
    fn is_marked_early(&mut self, lost: &[usize], mark: &Mark) -> Result<bool, LaboratoryError> {
        if !is_sent_after(self.log, lost, mark) {
            return Ok(false);
        }
        let at_mark = losing(self.log, &Cut::losing_all(mark.position + 1), &[]);
        self.fails(&at_mark, self.log.marks_before(mark.position + 1))
    }
}

/// Finds the smallest loss that suffices, the mark that is lost, and the flush that would have
/// saved it.
fn examine(
    log: &Arc<Log>,
    cut: &Cut,
    output: String,
    slot: &dyn Checker,
    stop: &AtomicBool,
) -> Result<Loss, LaboratoryError> {
    let mut examination = Examination {
        log,
        slot,
        stop,
        output,
    };
    let (lost, smallest) = examination.smallest_loss(cut)?;
    let kept = examination.smallest_kept(&smallest, &lost)?;
    let mark = examination.first_lost_mark(&smallest)?;
    let is_marked_early = match &mark {
        Some(mark) => examination.is_marked_early(&lost, mark)?,
        None => false,
    };
    let would_have_saved = match is_marked_early {
        true => saving_flush(log, slot, cut.position, &[], &[], mark.as_ref()),
        false => saving_flush(log, slot, cut.position, &lost, &kept, mark.as_ref()),
    };
    let describe = |request: &usize| describe(log, &smallest, *request, slot);
    Ok(Loss {
        cut: describe_moment(log, cut.position, slot),
        mark: mark.map(|mark| mark.name),
        requests_before: Some(lost.iter().map(describe).collect()),
        kept_requests: kept.iter().map(describe).collect(),
        would_have_saved,
        output: examination.output,
    })
}

/// Reports whether one of the requests was submitted after a mark.
fn is_sent_after(log: &Log, requests: &[usize], mark: &Mark) -> bool {
    let mut requests = requests.iter();
    requests.any(|request| log.requests[*request].submitted > mark.position)
}

fn saving_flush(
    log: &Log,
    slot: &dyn Checker,
    position: usize,
    lost: &[usize],
    kept: &[usize],
    mark: Option<&Mark>,
) -> Option<SavingFlush> {
    let number = |request: usize| log.number(request);
    let completed = |request: &usize| log.requests[*request].completed.unwrap_or(usize::MAX);
    let last = lost
        .iter()
        .copied()
        .max_by_key(|request| completed(request));
    let covers = |flush: usize| last.is_none_or(|last| slot.covers(flush, last));
    let ignored = last.and_then(|last| {
        let after = completed(&last);
        let mut flushes = log.requests.iter().enumerate().filter(|(index, request)| {
            request.is_ignored
                && request.submitted > after
                && request.is_completed_at(position)
                && covers(*index)
        });
        flushes.next().map(|(index, _)| number(index))
    });
    let later = |request: &&usize| last.is_some_and(|last| **request > last);
    let before_request = kept.iter().find(later).map(|request| number(*request));
    let before_mark = mark.filter(|mark| !is_sent_after(log, lost, mark));
    // Without a limit for it, a flush cannot be in time: what was durable is overwritten.
    let is_possible = ignored.is_some() || before_mark.is_some() || before_request.is_some();
    is_possible.then(|| SavingFlush {
        after_request: last.map(number),
        before_mark: before_mark.map(|mark| mark.name.clone()),
        before_request,
        ignored_flush: ignored,
        next_flush: log.next_flush(position, covers).map(number),
        synced: last
            .and_then(|last| slot.changed_file(last))
            .map(|file| file.synced),
    })
}

fn describe_moment(log: &Log, position: usize, slot: &dyn Checker) -> CutMoment {
    let numbered = |index: usize| NumberedRequest {
        request: log.number(index),
        kind: kind_name(log, index, slot),
    };
    let is_boundary = |index: usize| !log.requests[index].is_change() || log.requests[index].fua;
    let before = position.checked_sub(1).filter(|_| position > log.begin);
    let step = match (log.entries.get(position), before.map(|at| log.entries[at])) {
        _ if position == log.end => CutStep::End,
        (Some(Entry::Complete(index)), _) if is_boundary(*index) => {
            CutStep::BeforeCompletion(numbered(*index))
        }
        (_, Some(Entry::Submit(index))) => CutStep::AfterSubmission(numbered(index)),
        (_, Some(Entry::Complete(index))) => CutStep::AfterCompletion(numbered(index)),
        (_, Some(Entry::Mark(_))) => CutStep::AfterMark,
        (_, None) => CutStep::Start,
    };
    let last_mark = log.marks_before(position).last();
    CutMoment {
        position: position - log.begin,
        step,
        last_mark: last_mark.map(|mark| mark.name.clone()),
    }
}

/// Name of a request's kind, as users of the drive or directory know it.
fn kind_name(log: &Log, index: usize, slot: &dyn Checker) -> &'static str {
    match slot.changed_file(index) {
        Some(file) => file.kind,
        None if log.requests[index].is_change() => log.requests[index].kind.name(),
        None => slot.flush_name(),
    }
}

fn describe(log: &Log, cut: &Cut, index: usize, slot: &dyn Checker) -> LostRequest {
    let request = &log.requests[index];
    let file = slot.changed_file(index);
    let unit_count = request.units.end - request.units.start;
    LostRequest {
        request: log.number(index),
        kind: kind_name(log, index, slot),
        file,
        unit: request.units.start,
        unit_count,
        lost_unit_count: match cut.fate(index) {
            Fate::Kept => 0,
            Fate::Lost => unit_count,
            Fate::Torn(units) => units.iter().filter(|is_kept| !**is_kept).count() as u64,
            Fate::Unreadable { unit } => {
                let first_lost = log.medium_sector(*unit).start.max(request.units.start);
                request.units.end - first_lost
            }
        },
        unreadable: match cut.fate(index) {
            Fate::Unreadable { unit } => Some(log.medium_sector(*unit)),
            Fate::Kept | Fate::Lost | Fate::Torn(_) => None,
        },
    }
}
