//! One arm of an A/B measurement during execution: its run and the recorder that stores it.

use super::{AbRequest, do_share_files};
use crate::execute::{new_run, state_after};
use crate::plan::HostPlan;
use crate::recorder::RunRecorder;
use crate::{LaboratoryError, overhead};
use diskperf_analysis::interference;
use diskperf_models::{Observer, ObserverEvent};
use diskperf_system::host::CallClock;
use diskperf_system::host::hook::HookCommand;
use diskperf_timeline::{ComparisonVariant, InterleavedRun, ProgramResult, Repetition, Run};

pub(super) struct MeasuredVariant<'a> {
    pub(super) plan: &'a HostPlan,
    pub(super) hook: Option<HookCommand>,
    pub(super) run: Run,
    pub(super) recorder: &'a mut RunRecorder,
}

/// Creates both arms of an A/B measurement, with no results yet.
pub(super) fn new_pair<'a>(
    plans: [&'a HostPlan; 2],
    (hooks, request): ([Option<HookCommand>; 2], &AbRequest),
    clock: CallClock,
    recorders: [&'a mut RunRecorder; 2],
) -> [MeasuredVariant<'a>; 2] {
    let ids = plans.map(|plan| new_run(plan, clock));
    let [mut run_a, mut run_b] = ids;
    let places_differ = !do_share_files(plans);
    let [before_a, before_b] = request
        .sides
        .each_ref()
        .map(|side| side.before_command.clone());
    let interleaved = |partner: &Run, arm, before| {
        Some(InterleavedRun {
            partner_run_id: partner.run_id.clone(),
            variant: arm,
            seed: request.seed,
            targets_differ: places_differ,
            effect_min: Some(request.decision_limits.effect_share_min),
            ordered_after: before,
        })
    };
    run_a.interleaved = interleaved(&run_b, ComparisonVariant::A, before_a);
    run_b.interleaved = interleaved(&run_a, ComparisonVariant::B, before_b);
    let ([plan_a, plan_b], [hook_a, hook_b]) = (plans, hooks);
    let [recorder_a, recorder_b] = recorders;
    [
        MeasuredVariant::new(plan_a, hook_a, run_a, recorder_a),
        MeasuredVariant::new(plan_b, hook_b, run_b, recorder_b),
    ]
}

impl<'a> MeasuredVariant<'a> {
    fn new(
        plan: &'a HostPlan,
        hook: Option<HookCommand>,
        mut run: Run,
        recorder: &'a mut RunRecorder,
    ) -> Self {
        run.command_line = recorder.command_line().to_vec();
        if let Some(hook) = &hook {
            let note = format!("before each repetition: {}", hook.describe());
            run.notes.push(note);
        }
        Self {
            plan,
            hook,
            run,
            recorder,
        }
    }

    pub(super) fn begin_run(
        &mut self,
        clock: CallClock,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        self.run.overhead = Some(overhead::measure_overhead(clock).map_err(LaboratoryError::work)?);
        self.recorder.begin_run(&self.run);
        self.recorder.report_messages(observer);
        observer.handle_event(ObserverEvent::RunStarted(&self.run));
        for note in &self.run.notes {
            observer.handle_event(ObserverEvent::Note(note));
        }
        Ok(())
    }

    pub(super) fn begin_result(&mut self, result: ProgramResult) {
        self.recorder.begin_result(&result);
        self.run.results.push(result);
    }

    pub(super) fn add_repetition(
        &mut self,
        ordinal: usize,
        repetition: Repetition,
        observer: &mut dyn Observer,
    ) {
        self.recorder.add_repetition(ordinal, &repetition);
        self.recorder.report_messages(observer);
        self.run.results[ordinal].repetitions.push(repetition);
    }

    /// Finishes the result of a program: its protocol receives the number of repetitions made, and
    /// its notes are completed.
    pub(super) fn finish_result(&mut self, ordinal: usize, notes: Vec<String>) {
        let result = &mut self.run.results[ordinal];
        let made = result.repetitions.len() as u32;
        result.protocol.repetition_count = made.max(result.protocol.discarded_count + 1);
        let disturbed = interference::describe_disturbances(result);
        result.notes.extend(notes.into_iter().chain(disturbed));
        self.recorder.finish_result(ordinal, result);
    }

    /// Finishes the run of this arm of an A/B measurement, completed or failed, and returns it.
    pub(super) fn finish_run(
        mut self,
        error: Option<&LaboratoryError>,
        observer: &mut dyn Observer,
    ) -> Run {
        self.run.state = state_after(error);
        self.recorder.finish_run(&self.run);
        self.recorder.report_messages(observer);
        observer.handle_event(ObserverEvent::RunFinished(&self.run));
        self.run
    }
}
