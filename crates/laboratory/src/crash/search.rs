//! Search for cuts that lose something, and for the smallest loss that suffices.

use super::check::{Slot, Verdict};
use super::{
    CrashObserver, CrashOptions, CrashReport, FileSystemFailure, Loss, LostRequest, SavingFlush,
};
use crate::LaboratoryError;
use diskperf_crash::{Cut, Fate, Log, Mark, minimise};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Checks that the search for the smallest loss makes at most, for each of its two parts.
const MINIMISING_CHECKS_MAX: usize = 150;

/// Checks all cuts, and examines the first one that fails.
pub(super) fn search(
    log: &Arc<Log>,
    options: &CrashOptions,
    slots: &[Slot],
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let positions = options.instants.positions(log, options.seed);
    let cuts = positions
        .iter()
        .flat_map(|&position| options.policy.cuts(log, position, options.seed));
    let cuts: Vec<Cut> = cuts.collect();
    let verdicts = check_all(log, &cuts, slots, stop, observer)?;
    let mut report = CrashReport {
        change_count: log.change_count(),
        flush_count: log.flush_count(),
        mark_count: log.marks.len(),
        instant_count: positions.len(),
        cut_count: cuts.len(),
        ..CrashReport::default()
    };
    for (cut, verdict) in cuts.iter().zip(verdicts) {
        let instant = cut.position - log.begin;
        match verdict {
            Verdict::Good => {}
            Verdict::Damaged(output) => report.fsck_failures.push(FileSystemFailure {
                cut: instant,
                output,
            }),
            Verdict::Lost(output) => {
                let loss = match report.lost.is_empty() {
                    true => examine(log, cut, output, &slots[0], stop)?,
                    false => Loss {
                        cut: instant,
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

/// Verdicts so far, by number of the cut, and the number of failures among them.
#[derive(Default)]
struct Verdicts {
    found: Vec<Option<Verdict>>,
    failure_count: usize,
    error: Option<LaboratoryError>,
}

fn check_all(
    log: &Arc<Log>,
    cuts: &[Cut],
    slots: &[Slot],
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<Vec<Verdict>, LaboratoryError> {
    let next = AtomicUsize::new(0);
    let checked_count = AtomicUsize::new(0);
    let verdicts = Mutex::new(Verdicts {
        found: vec![None; cuts.len()],
        ..Verdicts::default()
    });
    let observer = Mutex::new(observer);
    let work = |slot: &Slot| {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let Some(cut) = cuts.get(number) else { return };
            let verdict = match stop.load(Ordering::SeqCst) {
                true => Err(LaboratoryError::Interrupted),
                false => slot.check(log, cut, log.marks_before(cut.position), stop),
            };
            let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
            match verdict {
                Ok(verdict) => {
                    verdicts.failure_count += usize::from(verdict != Verdict::Good);
                    verdicts.found[number] = Some(verdict);
                }
                Err(error) => {
                    verdicts.error.get_or_insert(error);
                    next.store(cuts.len(), Ordering::SeqCst);
                    return;
                }
            }
            let checked = checked_count.fetch_add(1, Ordering::SeqCst) + 1;
            let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
            observer.checked(checked, cuts.len(), verdicts.failure_count);
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

/// Finds the smallest loss that suffices, the mark that is lost, and the flush that would have
/// saved it.
fn examine(
    log: &Arc<Log>,
    cut: &Cut,
    output: String,
    slot: &Slot,
    stop: &AtomicBool,
) -> Result<Loss, LaboratoryError> {
    let marks = log.marks_before(cut.position);
    let mut last_output = output;
    let mut fails = |cut: &Cut, marks: &[Mark]| match slot.check(log, cut, marks, stop)? {
        Verdict::Lost(output) => {
            last_output = output;
            Ok::<bool, LaboratoryError>(true)
        }
        Verdict::Good | Verdict::Damaged(_) => Ok(false),
    };
    let lost = minimise(&cut.lost(log), MINIMISING_CHECKS_MAX, |part| {
        fails(&losing(log, cut, part), marks)
    })?;
    let mut smallest = losing(log, cut, &lost);
    for request in &lost {
        // A lost write says more than a torn one.
        let mut simpler = smallest.clone();
        if simpler.fates.remove(request).is_some() && fails(&simpler, marks)? {
            smallest = simpler;
        }
    }
    let others: Vec<usize> = log.at_risk(cut.position);
    let others: Vec<usize> = others.into_iter().filter(|of| !lost.contains(of)).collect();
    let is_whole = lost
        .iter()
        .all(|request| *smallest.fate(*request) == Fate::Lost);
    let kept = match is_whole && !lost.is_empty() {
        true => minimise(&others, MINIMISING_CHECKS_MAX, |part| {
            fails(&keeping(cut.position, part), marks)
        })?,
        false => Vec::new(),
    };
    let mark = first_lost_mark(marks, |marks| fails(&smallest, marks))?;
    let mut late = false;
    if let Some(mark) = mark.filter(|mark| is_sent_after(log, &lost, mark)) {
        // Either the mark came before its data, or later writes spoil what was durable.
        let at_mark = losing(log, &Cut::losing_all(mark.position + 1), &[]);
        late = fails(&at_mark, log.marks_before(mark.position + 1))?;
    }
    let would_have_saved = match late {
        true => saving_flush(log, cut.position, &[], &[], mark),
        false => saving_flush(log, cut.position, &lost, &kept, mark),
    };
    let describe = |request: &usize| describe(log, &smallest, *request);
    Ok(Loss {
        cut: cut.position - log.begin,
        mark: mark.map(|mark| mark.name.clone()),
        requests_before: Some(lost.iter().map(describe).collect()),
        kept_requests: kept.iter().map(describe).collect(),
        would_have_saved,
        output: last_output,
    })
}

/// Finds the first mark without which the check passes; `None` if it fails without any.
fn first_lost_mark<'m>(
    marks: &'m [Mark],
    mut fails: impl FnMut(&[Mark]) -> Result<bool, LaboratoryError>,
) -> Result<Option<&'m Mark>, LaboratoryError> {
    let (mut passing, mut failing) = (0, marks.len());
    if failing == 0 || fails(&[])? {
        return Ok(None);
    }
    while failing - passing > 1 {
        let middle = usize::midpoint(passing, failing);
        match fails(&marks[..middle])? {
            true => failing = middle,
            false => passing = middle,
        }
    }
    Ok(marks.get(failing - 1))
}

/// Reports whether one of the requests was submitted after a mark.
fn is_sent_after(log: &Log, requests: &[usize], mark: &Mark) -> bool {
    let mut requests = requests.iter();
    requests.any(|request| log.requests[*request].submitted > mark.position)
}

fn saving_flush(
    log: &Log,
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
    let ignored = last.and_then(|last| {
        let after = completed(&last);
        let mut flushes = log.requests.iter().enumerate().filter(|(_, request)| {
            request.is_ignored && request.submitted > after && request.is_completed_at(position)
        });
        flushes.next().map(|(index, _)| number(index))
    });
    let later = |request: &&usize| last.is_some_and(|last| **request > last);
    let before_request = kept.iter().find(later).map(|request| number(*request));
    let is_later =
        |mark: &Mark| last.is_none_or(|last| log.requests[last].submitted < mark.position);
    let before_mark = mark.filter(|mark| is_later(mark));
    // Without a limit for it, a flush cannot be in time: what was durable is overwritten.
    let is_possible = ignored.is_some() || before_mark.is_some() || before_request.is_some();
    is_possible.then(|| SavingFlush {
        after_request: last.map(number),
        before_mark: before_mark.map(|mark| mark.name.clone()),
        before_request,
        ignored_flush: ignored,
        next_flush: log.next_flush(position).map(number),
    })
}

fn describe(log: &Log, cut: &Cut, index: usize) -> LostRequest {
    let request = &log.requests[index];
    let unit_count = request.units.end - request.units.start;
    LostRequest {
        request: log.number(index),
        kind: request.kind.name(),
        unit: request.units.start,
        unit_count,
        lost_unit_count: match cut.fate(index) {
            Fate::Kept => 0,
            Fate::Lost => unit_count,
            Fate::Torn(units) => units.iter().filter(|is_kept| !**is_kept).count() as u64,
        },
    }
}
