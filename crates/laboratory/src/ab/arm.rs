//! One arm of an A/B measurement during execution: its run and the recorder that stores it.

use super::{AbRequest, share_files};
use crate::execute::{new_run, state_after};
use crate::plan::HostPlan;
use crate::recorder::Recorder;
use crate::{LaboratoryError, overhead};
use diskperf_analysis::interference;
use diskperf_models::{Event, Observer};
use diskperf_system::host::CallClock;
use diskperf_system::host::hook::HookCommand;
use diskperf_timeline::{ComparisonVariant, InterleavedRun, ProgramResult, Repetition, Run};

/// One arm of an A/B measurement, with its plan, run and recorder.
pub(super) struct Measured<'a> {
    pub(super) plan: &'a HostPlan,
    pub(super) hook: Option<HookCommand>,
    pub(super) run: Run,
    pub(super) recorder: &'a mut Recorder,
}

/// Creates both arms of an A/B measurement, with no results yet.
pub(super) fn both<'a>(
    plans: [&'a HostPlan; 2],
    (hooks, request): ([Option<HookCommand>; 2], &AbRequest),
    clock: CallClock,
    recorders: [&'a mut Recorder; 2],
) -> [Measured<'a>; 2] {
    let ids = plans.map(|plan| new_run(plan, clock));
    let [mut run_a, mut run_b] = ids;
    let places_differ = !share_files(plans);
    let [before_a, before_b] = request.sides.each_ref().map(|side| side.before.clone());
    let interleaved = |partner: &Run, arm, before| {
        Some(InterleavedRun {
            partner_run_id: partner.run_id.clone(),
            variant: arm,
            seed: request.seed,
            targets_differ: places_differ,
            effect_min: Some(request.limits.min_effect),
            ordered_after: before,
        })
    };
    run_a.interleaved = interleaved(&run_b, ComparisonVariant::A, before_a);
    run_b.interleaved = interleaved(&run_a, ComparisonVariant::B, before_b);
    let ([plan_a, plan_b], [hook_a, hook_b]) = (plans, hooks);
    let [recorder_a, recorder_b] = recorders;
    [
        Measured::new(plan_a, hook_a, run_a, recorder_a),
        Measured::new(plan_b, hook_b, run_b, recorder_b),
    ]
}

impl<'a> Measured<'a> {
    fn new(
        plan: &'a HostPlan,
        hook: Option<HookCommand>,
        mut run: Run,
        recorder: &'a mut Recorder,
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

    pub(super) fn begin(
        &mut self,
        clock: CallClock,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        self.run.overhead = Some(overhead::measure(clock).map_err(LaboratoryError::work)?);
        self.recorder.begin_run(&self.run);
        self.recorder.tell(observer);
        observer.event(Event::RunStarted(&self.run));
        for note in &self.run.notes {
            observer.event(Event::Note(note));
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
        self.recorder.tell(observer);
        self.run.results[ordinal].repetitions.push(repetition);
    }

    /// Finishes the result of a program: its protocol receives the number of repetitions made, and
    /// its notes are completed.
    pub(super) fn finish_result(&mut self, ordinal: usize, notes: Vec<String>) {
        let result = &mut self.run.results[ordinal];
        let made = result.repetitions.len() as u32;
        result.protocol.repetition_count = made.max(result.protocol.discarded_count + 1);
        let disturbed = interference::note(result);
        result.notes.extend(notes.into_iter().chain(disturbed));
        self.recorder.finish_result(ordinal, result);
    }

    /// Finishes the run of this arm of an A/B measurement, completed or failed, and returns it.
    pub(super) fn finish(
        mut self,
        error: Option<&LaboratoryError>,
        observer: &mut dyn Observer,
    ) -> Run {
        self.run.state = state_after(error);
        self.recorder.finish_run(&self.run);
        self.recorder.tell(observer);
        observer.event(Event::RunFinished(&self.run));
        self.run
    }
}
