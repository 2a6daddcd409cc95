//! Attribution of a program's time on real storage: by events of the block layer where they are
//! available, by layers, and by counters.

use crate::execute::execute;
use crate::plan::{HostPlan, Plan};
use crate::recorder::RunRecorder;
use diskperf_analysis::comparison::{ResultPair, compare};
use diskperf_analysis::explanation::chains::{ChainAccount, OperationBreakdown};
use diskperf_analysis::explanation::difference::ExplanationDifferences;
use diskperf_analysis::explanation::side_by_side::{ExplanationSide, WorkAmount, compare_sides};
use diskperf_analysis::explanation::unlike::list_run_differences;
use diskperf_analysis::explanation::verdict::{
    sort_own_requests_first, write_chain_verdict, write_storage_verdict,
};
use diskperf_analysis::explanation::{
    Explanation, ProgramExplanation, TimeAccount, observed, processor, stored,
};
use diskperf_analysis::layers::{Decomposition, decompose};
use diskperf_analysis::quantity::judged_duration_s;
use diskperf_battery::SuiteJob;
use diskperf_models::LaboratoryError;
use diskperf_models::explain::{
    ExplainedSystem, ExplanationOptions, check_separate_jobs, explain_system,
};
use diskperf_models::{Observer, ObserverEvent};
use diskperf_timeline::{BlockTrace, Nanoseconds, ProgramResult, Repetition, Run, Trace};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An explanation, with the data that a comparison with another one needs.
pub struct StorageExplanation {
    /// Name of the explained run or system, for headings.
    pub name: String,
    /// Attribution of the elapsed time to stages.
    pub explanation: Explanation,
    /// Amount of work of each program: its size and requests.
    pub work_amounts: Vec<WorkAmount>,
    /// Trace of each program; `None` where events were not recorded.
    pub traces: Vec<Option<Trace>>,
    /// Explained run; `None` for a modelled system.
    pub run: Option<Run>,
}

impl StorageExplanation {
    fn to_side(&self) -> ExplanationSide<'_> {
        ExplanationSide {
            name: &self.name,
            explanation: &self.explanation,
            work_amounts: &self.work_amounts,
        }
    }
}

/// Explains a stored run on real storage from its stored data.
///
/// # Errors
///
/// Returns an error if no repetition of a program counts.
pub fn explain_run(run: Run) -> Result<StorageExplanation, LaboratoryError> {
    let name = format!("{} (run {})", run.measured_description(), run.run_id);
    let mut told = build_explanation(name, run, &[], Vec::new())?;
    told.explanation.notes.push(
        "from the counters of a stored run; explain the path instead of the run, as root, and block-layer events show what it waited for".to_owned(),
    );
    Ok(told)
}

/// Runs the programs of a plan and explains them. Nothing is stored, because tracing slows the run.
///
/// # Errors
///
/// Returns the error that ends the run.
pub fn explain_target(
    plan: &HostPlan,
    store: Option<&Path>,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<StorageExplanation, LaboratoryError> {
    check_separate_jobs(&plan.suite)?;
    let plan = HostPlan {
        records_block_events: true,
        ..plan.clone()
    };
    let name = plan.target_name();
    let mut collector = EventCollector {
        inner: observer,
        latest_events: None,
        events: Vec::new(),
        notes: Vec::new(),
    };
    let mut recorder = RunRecorder::open_for_leftovers(store);
    let plan = Plan::Host(Box::new(plan));
    let executed = execute(&plan, stop, &mut collector, &mut recorder);
    let EventCollector { events, notes, .. } = collector;
    match executed.error {
        Some(error) => Err(error),
        None => build_explanation(name, executed.run, &events, notes),
    }
}

/// Explains a modelled system in the form that compares with real storage, without counterfactuals.
///
/// # Errors
///
/// Returns the error of the modelled machine.
pub fn explain_model(
    subject: &ExplainedSystem,
    means: &ExplanationOptions<'_>,
) -> Result<StorageExplanation, LaboratoryError> {
    let plan = &subject.plan;
    let means = ExplanationOptions {
        runs_counterfactuals: false,
        ..*means
    };
    let (explanation, traces) = explain_system(subject, &means)?;
    let amount = |job: &SuiteJob| WorkAmount {
        size_bytes: plan.file_bytes(job),
        request_count: 0,
    };
    let computers = plan.computers.iter();
    let amounts = computers.flat_map(|_| plan.suite.iter_jobs().map(amount));
    Ok(StorageExplanation {
        name: subject.name.clone(),
        explanation,
        work_amounts: amounts.collect(),
        traces: traces.into_iter().map(Some).collect(),
        run: None,
    })
}

/// Compares two explanations stage by stage.
///
/// # Errors
///
/// Returns an error if the two have no program in common.
pub fn compare_explanations(
    a: &StorageExplanation,
    b: &StorageExplanation,
) -> Result<ExplanationDifferences, LaboratoryError> {
    let runs = a.run.as_ref().zip(b.run.as_ref());
    let differs = runs.map_or_else(Vec::new, |(a, b)| list_run_differences(a, b));
    let found = compare_sides(&a.to_side(), &b.to_side(), differs);
    let mut found = found.ok_or_else(|| {
        let programs = |told: &StorageExplanation| -> String {
            let all = told.explanation.programs.iter();
            let names: Vec<&str> = all.map(|one| one.program.as_str()).collect();
            names.join(", ")
        };
        LaboratoryError::Request(format!(
            "{} and {} ran different programs, whose times cannot be compared: {} and {}; give two runs of the same programs",
            a.name,
            b.name,
            programs(a),
            programs(b)
        ))
    })?;
    if let Some((a, b)) = runs {
        found.notes.splice(0..0, list_unexplained(a, b));
    } else {
        found.notes.push(
            "one of the two is measured and the other is modelled: the stages are those of the modelled computer, and time that real storage does not report is unattributed".to_owned(),
        );
    }
    Ok(found)
}

/// Notes for the programs of two measured runs whose repetitions do not prove a difference.
fn list_unexplained(a: &Run, b: &Run) -> Vec<String> {
    let compared = compare(&[a.clone(), b.clone()]);
    let pairs = compared.result_pairs.iter();
    let untold = pairs
        .filter(|pair| pair.quantity.is_primary() && !pair.judgement.verdict.shows_difference());
    let told = |pair: &ResultPair| {
        format!(
            "{}: {}: the difference may be chance, and so may its stages; `compare` prints the interval, and `ab` tells two settings apart",
            pair.title,
            pair.describe_verdict()
        )
    };
    untold.map(told).collect()
}

/// Recorded events of one repetition.
enum RepetitionEvents {
    /// Requests of the disks and waits of the workers, from tracefs.
    Block(BlockTrace),
    /// Chains of stages, from eBPF programs.
    Chains(Box<ChainAccount>),
}

impl RepetitionEvents {
    fn block_trace(&self) -> Option<&BlockTrace> {
        match self {
            Self::Block(trace) => Some(trace),
            Self::Chains(_) => None,
        }
    }

    fn chain_account(&self) -> Option<&ChainAccount> {
        match self {
            Self::Block(_) => None,
            Self::Chains(account) => Some(account),
        }
    }

    fn lost_event_count(&self) -> u64 {
        match self {
            Self::Block(trace) => trace.lost_event_count,
            Self::Chains(account) => account.lost_event_count,
        }
    }
}

struct EventCollector<'a> {
    inner: &'a mut dyn Observer,
    latest_events: Option<RepetitionEvents>,
    /// Events of each repetition of each program.
    events: Vec<Vec<Option<RepetitionEvents>>>,
    notes: Vec<String>,
}

impl Observer for EventCollector<'_> {
    fn handle_event(&mut self, event: ObserverEvent<'_>) {
        match event {
            ObserverEvent::BlockTraceRecorded(trace) => {
                self.latest_events = Some(RepetitionEvents::Block(trace));
                return;
            }
            // Millions of events become an account at once.
            ObserverEvent::KernelEventsRecorded {
                recording,
                timed_parts,
                device_names,
            } => {
                let account = ChainAccount::from_recording(&recording, timed_parts, device_names);
                self.latest_events =
                    account.map(|account| RepetitionEvents::Chains(Box::new(account)));
                return;
            }
            ObserverEvent::Note(note) => {
                if !self.notes.iter().any(|known| known == note) {
                    self.notes.push(note.to_owned());
                }
                return;
            }
            ObserverEvent::StepStarted { .. } => self.events.push(Vec::new()),
            // A pilot's is nobody's.
            ObserverEvent::RepetitionStarted { .. } => self.latest_events = None,
            ObserverEvent::RepetitionFinished(_) => {
                if let Some(program) = self.events.last_mut() {
                    program.push(self.latest_events.take());
                }
            }
            ObserverEvent::RunStarted(_)
            | ObserverEvent::RequestsRecorded(_)
            | ObserverEvent::PilotFinished { .. }
            | ObserverEvent::BlockFinished { .. }
            | ObserverEvent::StepFinished(_)
            | ObserverEvent::SettingTried(_)
            | ObserverEvent::Warning(_)
            | ObserverEvent::RunFinished(_) => {}
        }
        self.inner.handle_event(event);
    }
}

fn build_explanation(
    name: String,
    run: Run,
    events: &[Vec<Option<RepetitionEvents>>],
    mut notes: Vec<String>,
) -> Result<StorageExplanation, LaboratoryError> {
    let results: Vec<&ProgramResult> = run.results.iter().collect();
    let layers = decompose(&results);
    let mut told = StorageExplanation {
        name: String::new(),
        explanation: Explanation {
            subject: format!("{} on {name}", run.suite_name),
            programs: Vec::new(),
            notes: Vec::new(),
        },
        work_amounts: Vec::new(),
        traces: Vec::new(),
        run: None,
    };
    for (number, result) in results.iter().enumerate() {
        let own = events.get(number).map_or(&[][..], Vec::as_slice);
        let watched = find_watched_repetition(result, own, &layers);
        let (mut account, repetition, trace, breakdowns) = match watched {
            Some(watched) => (
                watched.account,
                watched.repetition,
                Some(watched.trace),
                watched.breakdowns,
            ),
            None => {
                let account =
                    stored::build_account(result, &layers).zip(stored::median_repetition(result));
                let Some((account, repetition)) = account else {
                    continue;
                };
                (account, repetition, None, Vec::new())
            }
        };
        sort_own_requests_first(&mut account, repetition);
        notes.extend(describe_lost_events(result, own));
        notes.extend(describe_disagreement(result, own));
        notes.extend(list_remarks(result, &layers, trace.is_some()));
        told.explanation.programs.push(ProgramExplanation {
            program: result.display_title(),
            filesystem: result.filesystem_type.clone(),
            drive_count: result.drive_count,
            verdict_sentences: match breakdowns.as_slice() {
                [] => write_storage_verdict(&account, repetition),
                breakdowns => write_chain_verdict(&account, breakdowns, repetition),
            },
            breakdowns,
            accounted_cpu: Some(Nanoseconds(
                repetition.sum_over_workers(|worker| worker.cpu_time.0),
            )),
            time_account: account,
            unwritten_share: None,
            counterfactuals: Vec::new(),
            tails: Vec::new(),
        });
        told.work_amounts.push(WorkAmount {
            size_bytes: result.size_bytes,
            request_count: repetition.sum_over_workers(|worker| worker.call_count),
        });
        told.traces.push(trace);
    }
    if told.explanation.programs.is_empty() {
        return Err(LaboratoryError::Request(format!(
            "run {} has no kept repetition, so there is nothing to explain: `diskperf show {}` prints what is stored",
            run.run_id, run.run_id
        )));
    }
    notes.extend(run.notes.iter().cloned());
    notes.extend(describe_request_counts(&told));
    for note in notes {
        if !told.explanation.notes.contains(&note) {
            told.explanation.notes.push(note);
        }
    }
    told.name = name;
    told.run = Some(run);
    Ok(told)
}

/// Repetitions that count, with their events.
fn list_kept<'r>(
    result: &'r ProgramResult,
    events: &'r [Option<RepetitionEvents>],
) -> impl Iterator<Item = (&'r Repetition, &'r RepetitionEvents)> {
    let pairs = result.repetitions.iter().zip(events);
    pairs
        .filter(|(repetition, _)| !repetition.is_discarded)
        .filter_map(|(repetition, events)| Some((repetition, events.as_ref()?)))
}

/// Repetitions that count and whose trace lost no event.
fn find_complete_trace<'r>(
    result: &'r ProgramResult,
    events: &'r [Option<RepetitionEvents>],
) -> impl Iterator<Item = (&'r Repetition, &'r BlockTrace)> {
    list_kept(result, events)
        .filter_map(|(repetition, events)| Some((repetition, events.block_trace()?)))
        .filter(|(_, trace)| trace.lost_event_count == 0)
}

/// Repetition whose events were recorded, with the account and the trace of them.
struct WatchedRepetition<'r> {
    account: TimeAccount,
    repetition: &'r Repetition,
    trace: Trace,
    breakdowns: Vec<OperationBreakdown>,
}

/// Returns the median repetition, by the judged quantity, with its events.
fn choose_median<'r, T>(mut kept: Vec<(&'r Repetition, &'r T)>) -> Option<(&'r Repetition, &'r T)> {
    kept.sort_by(|(one, _), (other, _)| {
        judged_duration_s(one).total_cmp(&judged_duration_s(other))
    });
    kept.get(kept.len().checked_sub(1)? / 2).copied()
}

/// Returns the account of the median repetition. Of repetitions with chains those with the fewest
/// lost events count; of others those whose trace lost none and agrees with the kernel's
/// accounting.
fn find_watched_repetition<'r>(
    result: &'r ProgramResult,
    events: &'r [Option<RepetitionEvents>],
    layers: &[Decomposition],
) -> Option<WatchedRepetition<'r>> {
    let chains = || {
        list_kept(result, events)
            .filter_map(|(repetition, events)| Some((repetition, events.chain_account()?)))
    };
    if let Some(lost) = chains().map(|(_, chains)| chains.lost_event_count).min() {
        let best = chains().filter(|(_, chains)| chains.lost_event_count == lost);
        let (repetition, chains) = choose_median(best.collect())?;
        return Some(WatchedRepetition {
            account: chains.account.clone(),
            repetition,
            trace: chains.trace.clone(),
            breakdowns: chains.breakdowns.clone(),
        });
    }
    let agreeing = find_complete_trace(result, events).filter(|(repetition, trace)| {
        observed::find_cpu_share_disagreement(trace, repetition).is_none()
    });
    let (repetition, block) = choose_median(agreeing.collect())?;
    let mut account = observed::build_account(block)?;
    let calls = repetition.sum_over_workers(|worker| worker.call_count);
    match stored::find_layers_of_result(result, layers) {
        Some(parts) => processor::divide_by_layers(&mut account, parts, calls),
        None => processor::divide_cpu_time(&mut account, result),
    }
    Some(WatchedRepetition {
        account,
        repetition,
        trace: observed::build_trace(block),
        breakdowns: Vec::new(),
    })
}

/// Returns a note on events that the kernel had no space for, or that came in an interrupt of the
/// recording itself; `None` if it lost none.
fn describe_lost_events(
    result: &ProgramResult,
    events: &[Option<RepetitionEvents>],
) -> Option<String> {
    let kept: Vec<&RepetitionEvents> = list_kept(result, events)
        .map(|(_, events)| events)
        .collect();
    let losing = kept.iter().filter(|events| events.lost_event_count() > 0);
    let (count, lost) = losing.fold((0, 0), |(count, lost), events| {
        (count + 1, lost + events.lost_event_count())
    });
    let consequence = match kept.first()? {
        RepetitionEvents::Block(_) => {
            "because the buffer was full, and are explained without events"
        }
        RepetitionEvents::Chains(_) => {
            "(the buffer was full, or an interrupt came while an event was recorded), and what the lost ones would have explained is unattributed"
        }
    };
    (count > 0).then(|| {
        format!(
            "{}: {count} of {} repetitions lost {lost} events {consequence}; use a smaller --size",
            result.display_title(),
            kept.len()
        )
    })
}

/// Returns a note on repetitions whose trace events contradict the kernel's accounting; `None` if
/// there are none.
fn describe_disagreement(
    result: &ProgramResult,
    events: &[Option<RepetitionEvents>],
) -> Option<String> {
    let kept: Vec<_> = find_complete_trace(result, events).collect();
    let found: Vec<_> = kept
        .iter()
        .filter_map(|(repetition, trace)| observed::find_cpu_share_disagreement(trace, repetition))
        .collect();
    let first = found.first()?;
    let without = match found.len() == kept.len() {
        true => {
            "the ledger is from counters and not from events; repeat the run with less other load on this machine"
        }
        false => "they are left out",
    };
    Some(format!(
        "{}: not sure: in {} of {} repetitions the scheduler's events and the kernel's accounting disagree (by the events {:.0} % of the time on a processor, by the accounting {:.0} %): {without}",
        result.display_title(),
        found.len(),
        kept.len(),
        100.0 * first.cpu_share_from_events,
        100.0 * first.cpu_share_from_accounting,
    ))
}

fn list_remarks(
    result: &ProgramResult,
    layers: &[Decomposition],
    watched: bool,
) -> impl Iterator<Item = String> {
    let workers = stored::median_repetition(result).map_or(0, |one| one.workers.len());
    let of_layers = stored::describe_source(result, layers);
    let by_layers = stored::find_layers_of_result(result, layers).is_some();
    let undivided = (!by_layers)
        .then(|| processor::describe_cpu_division(result))
        .flatten();
    let counters = (!watched && workers > 1).then(|| {
        format!(
            "{}: the ledger is that of the program that ended last of {}",
            result.display_title(),
            workers
        )
    });
    let own = result.notes.iter().cloned();
    let all: Vec<String> = own
        .chain(of_layers)
        .chain(undivided)
        .chain(counters)
        .collect();
    all.into_iter()
}

/// Returns a note on the meaning of requests, if any were observed.
fn describe_request_counts(told: &StorageExplanation) -> Option<String> {
    let accounts = told.explanation.programs.iter();
    let observed = accounts
        .flat_map(|one| &one.time_account.device_accounts)
        .find(|device| device.at_device_mean.is_some())?;
    if told
        .explanation
        .programs
        .iter()
        .any(|one| !one.breakdowns.is_empty())
    {
        return Some(
            "a wait is booked to what ended it, through all tasks and requests; the requests of a device are those of the whole machine, not of the program alone".to_owned(),
        );
    }
    Some(format!(
        "from events of the block layer and the scheduler, to the microsecond; a wait is booked to device while {} has a request in service, and to driver queue while requests only wait there; the requests are those of the whole machine, not of the program alone",
        observed.device_name
    ))
}

#[cfg(test)]
mod tests;
