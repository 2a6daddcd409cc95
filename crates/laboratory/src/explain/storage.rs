//! Attribution of a program's time on real storage: by events of the block layer where they are
//! available, by layers, and by counters.

use crate::execute::execute;
use crate::plan::{HostPlan, Plan};
use crate::recorder::Recorder;
use diskperf_analysis::comparison::{Pair, compare};
use diskperf_analysis::explanation::difference::Differences;
use diskperf_analysis::explanation::side_by_side::{Amount, Side, side_by_side};
use diskperf_analysis::explanation::unlike::unlike;
use diskperf_analysis::explanation::verdict::{own_requests_first, storage_verdict};
use diskperf_analysis::explanation::{
    Account, Explanation, ProgramExplanation, observed, processor, stored,
};
use diskperf_analysis::layers::{Decomposition, decompose};
use diskperf_analysis::quantity::judged_s;
use diskperf_battery::SuiteJob;
use diskperf_models::LaboratoryError;
use diskperf_models::explain::{Means, Subject, check_apart, explain};
use diskperf_models::{Event, Observer};
use diskperf_timeline::{BlockTrace, Nanoseconds, ProgramResult, Repetition, Run, Trace};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An explanation, with the data that a comparison with another one needs.
pub struct Told {
    /// Name of the explained run or system, for headings.
    pub name: String,
    /// Attribution of the elapsed time to stages.
    pub explanation: Explanation,
    /// Amount of work of each program: its size and requests.
    pub amounts: Vec<Amount>,
    /// Trace of each program; `None` where events were not recorded.
    pub traces: Vec<Option<Trace>>,
    /// Explained run; `None` for a modelled system.
    pub run: Option<Run>,
}

impl Told {
    fn side(&self) -> Side<'_> {
        Side {
            name: &self.name,
            explanation: &self.explanation,
            amounts: &self.amounts,
        }
    }
}

/// Explains a stored run on real storage from its stored data.
///
/// # Errors
///
/// Returns an error if no repetition of a program counts.
pub fn explain_run(run: Run) -> Result<Told, LaboratoryError> {
    let name = format!("{} (run {})", run.measured_description(), run.run_id);
    let mut told = told(name, run, &[], Vec::new())?;
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
) -> Result<Told, LaboratoryError> {
    check_apart(&plan.suite)?;
    let plan = HostPlan {
        block_events: true,
        ..plan.clone()
    };
    let name = plan.target_name();
    let mut collector = Collector {
        inner: observer,
        latest: None,
        traces: Vec::new(),
        notes: Vec::new(),
    };
    let mut recorder = Recorder::of_leftovers(store);
    let plan = Plan::Host(Box::new(plan));
    let executed = execute(&plan, stop, &mut collector, &mut recorder);
    let Collector { traces, notes, .. } = collector;
    match executed.error {
        Some(error) => Err(error),
        None => told(name, executed.run, &traces, notes),
    }
}

/// Explains a modelled system in the form that compares with real storage, without counterfactuals.
///
/// # Errors
///
/// Returns the error of the modelled machine.
pub fn explain_model(subject: &Subject, means: &Means<'_>) -> Result<Told, LaboratoryError> {
    let plan = &subject.plan;
    let means = Means {
        counterfactuals: false,
        ..*means
    };
    let (explanation, traces) = explain(subject, &means)?;
    let amount = |job: &SuiteJob| Amount {
        size_bytes: plan.size(job),
        requests: 0,
    };
    let computers = plan.computers.iter();
    let amounts = computers.flat_map(|_| plan.suite.iter_jobs().map(amount));
    Ok(Told {
        name: subject.name.clone(),
        explanation,
        amounts: amounts.collect(),
        traces: traces.into_iter().map(Some).collect(),
        run: None,
    })
}

/// Compares two explanations stage by stage.
///
/// # Errors
///
/// Returns an error if the two have no program in common.
pub fn differences(a: &Told, b: &Told) -> Result<Differences, LaboratoryError> {
    let runs = a.run.as_ref().zip(b.run.as_ref());
    let differs = runs.map_or_else(Vec::new, |(a, b)| unlike(a, b));
    let found = side_by_side(&a.side(), &b.side(), differs);
    let mut found = found.ok_or_else(|| {
        let programs = |told: &Told| -> String {
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
        found.notes.splice(0..0, untold(a, b));
    } else {
        found.notes.push(
            "one of the two is measured and the other is modelled: the stages are those of the modelled computer, and time that real storage does not report is unattributed".to_owned(),
        );
    }
    Ok(found)
}

/// Notes for the programs of two measured runs whose repetitions do not prove a difference.
fn untold(a: &Run, b: &Run) -> Vec<String> {
    let compared = compare(&[a.clone(), b.clone()]);
    let pairs = compared.pairs.iter();
    let untold =
        pairs.filter(|pair| pair.quantity.is_primary() && !pair.judgement.verdict.is_difference());
    let told = |pair: &Pair| {
        format!(
            "{}: {}: the difference may be chance, and so may its stages; `compare` prints the interval, and `ab` tells two settings apart",
            pair.title,
            pair.verdict()
        )
    };
    untold.map(told).collect()
}

/// Observer that collects the block trace of each repetition, and all notes.
struct Collector<'a> {
    inner: &'a mut dyn Observer,
    latest: Option<BlockTrace>,
    traces: Vec<Vec<Option<BlockTrace>>>,
    notes: Vec<String>,
}

impl Observer for Collector<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::BlockLayer(trace) => {
                self.latest = Some(trace);
                return;
            }
            Event::Note(note) => {
                if !self.notes.iter().any(|known| known == note) {
                    self.notes.push(note.to_owned());
                }
                return;
            }
            Event::StepStarted { .. } => self.traces.push(Vec::new()),
            // A pilot's is nobody's.
            Event::RepetitionStarted { .. } => self.latest = None,
            Event::RepetitionFinished(_) => {
                if let Some(program) = self.traces.last_mut() {
                    program.push(self.latest.take());
                }
            }
            Event::RunStarted(_)
            | Event::Recorded(_)
            | Event::Pilot { .. }
            | Event::BlockFinished { .. }
            | Event::StepFinished(_)
            | Event::SettingTried(_)
            | Event::Warning(_)
            | Event::RunFinished(_) => {}
        }
        self.inner.event(event);
    }
}

fn told(
    name: String,
    run: Run,
    traces: &[Vec<Option<BlockTrace>>],
    mut notes: Vec<String>,
) -> Result<Told, LaboratoryError> {
    let results: Vec<&ProgramResult> = run.results.iter().collect();
    let layers = decompose(&results);
    let mut told = Told {
        name: String::new(),
        explanation: Explanation {
            what: format!("{} on {name}", run.suite_name),
            programs: Vec::new(),
            notes: Vec::new(),
        },
        amounts: Vec::new(),
        traces: Vec::new(),
        run: None,
    };
    for (number, result) in results.iter().enumerate() {
        let own = traces.get(number).map_or(&[][..], Vec::as_slice);
        let watched = watched(result, own, &layers);
        let (mut account, repetition, trace) = match watched {
            Some((account, repetition, trace)) => (account, repetition, Some(trace)),
            None => {
                let account = stored::account(result, &layers).zip(stored::middle(result));
                let Some((account, repetition)) = account else {
                    continue;
                };
                (account, repetition, None)
            }
        };
        own_requests_first(&mut account, repetition);
        notes.extend(lost(result, own));
        notes.extend(disagreeing(result, own));
        notes.extend(remarks(result, &layers, trace.is_some()));
        told.explanation.programs.push(ProgramExplanation {
            program: result.display_title(),
            filesystem: result.filesystem_type.clone(),
            drives: result.drive_count,
            verdict: storage_verdict(&account, repetition),
            accounted: Some(Nanoseconds(
                repetition.sum_over_workers(|worker| worker.cpu_time.0),
            )),
            account,
            unwritten_share: None,
            counterfactuals: Vec::new(),
            tails: Vec::new(),
        });
        told.amounts.push(Amount {
            size_bytes: result.size_bytes,
            requests: repetition.sum_over_workers(|worker| worker.call_count),
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
    notes.extend(requests_note(&told));
    for note in notes {
        if !told.explanation.notes.contains(&note) {
            told.explanation.notes.push(note);
        }
    }
    told.name = name;
    told.run = Some(run);
    Ok(told)
}

/// Repetitions that count and whose trace lost no event.
fn whole<'r>(
    result: &'r ProgramResult,
    traces: &'r [Option<BlockTrace>],
) -> impl Iterator<Item = (&'r Repetition, &'r BlockTrace)> {
    let pairs = result.repetitions.iter().zip(traces);
    pairs
        .filter(|(repetition, _)| !repetition.is_discarded)
        .filter_map(|(repetition, trace)| Some((repetition, trace.as_ref()?)))
        .filter(|(_, trace)| trace.lost_event_count == 0)
}

/// Returns the account of the median repetition, by the judged quantity. Only repetitions count
/// whose trace lost no event and agrees with the kernel's accounting.
fn watched<'r>(
    result: &'r ProgramResult,
    traces: &'r [Option<BlockTrace>],
    layers: &[Decomposition],
) -> Option<(Account, &'r Repetition, Trace)> {
    let mut kept: Vec<(&Repetition, &BlockTrace)> = whole(result, traces)
        .filter(|(repetition, trace)| observed::disagreement(trace, repetition).is_none())
        .collect();
    kept.sort_by(|(one, _), (other, _)| judged_s(one).total_cmp(&judged_s(other)));
    let (repetition, block) = kept.get(kept.len().checked_sub(1)? / 2)?;
    let mut account = observed::account(block)?;
    let calls = repetition.sum_over_workers(|worker| worker.call_count);
    match stored::layers_of(result, layers) {
        Some(parts) => processor::divide_by_layers(&mut account, parts, calls),
        None => processor::divide(&mut account, result),
    }
    Some((account, repetition, observed::trace(block)))
}

/// Returns a note on trace events that the kernel had no space for; `None` if it lost none.
fn lost(result: &ProgramResult, traces: &[Option<BlockTrace>]) -> Option<String> {
    let pairs = result.repetitions.iter().zip(traces);
    let kept = pairs.filter(|(repetition, _)| !repetition.is_discarded);
    let traces: Vec<&BlockTrace> = kept.filter_map(|(_, trace)| trace.as_ref()).collect();
    let losing = traces.iter().filter(|trace| trace.lost_event_count > 0);
    let (count, events) = losing.fold((0, 0), |(count, events), trace| {
        (count + 1, events + trace.lost_event_count)
    });
    (count > 0).then(|| {
        format!(
            "{}: {count} of {} repetitions lost {events} events because the buffer was full, and are explained without events; use a smaller --size",
            result.display_title(),
            traces.len()
        )
    })
}

/// Returns a note on repetitions whose trace events contradict the kernel's accounting; `None` if
/// there are none.
fn disagreeing(result: &ProgramResult, traces: &[Option<BlockTrace>]) -> Option<String> {
    let kept: Vec<_> = whole(result, traces).collect();
    let found: Vec<_> = kept
        .iter()
        .filter_map(|(repetition, trace)| observed::disagreement(trace, repetition))
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
        100.0 * first.by_events,
        100.0 * first.by_accounting,
    ))
}

fn remarks(
    result: &ProgramResult,
    layers: &[Decomposition],
    watched: bool,
) -> impl Iterator<Item = String> {
    let workers = stored::middle(result).map_or(0, |one| one.workers.len());
    let of_layers = stored::note(result, layers);
    let by_layers = stored::layers_of(result, layers).is_some();
    let undivided = (!by_layers).then(|| processor::note(result)).flatten();
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
fn requests_note(told: &Told) -> Option<String> {
    let accounts = told.explanation.programs.iter();
    let observed = accounts
        .flat_map(|one| &one.account.devices)
        .find(|device| device.at_device_mean.is_some())?;
    Some(format!(
        "from events of the block layer and the scheduler, to the microsecond; a wait is booked to device while {} has a request in service, and to driver queue while requests only wait there; the requests are those of the whole machine, not of the program alone",
        observed.device
    ))
}

#[cfg(test)]
mod tests;
