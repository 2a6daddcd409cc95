//! Bench: a modelled machine on which programs are repeated.

use crate::error::{LaboratoryError, StorageNames};
use crate::measured::{
    JobTask, PipeEnds, StorageSetup, WorkerAssignment, WorkerError, WorkerOutcome,
    collect_repetitions, measure_worker,
};
use crate::model::computer::medium_of_specification;
use crate::observer::{EventSource, Observer, ObserverEvent, RecordedEvent};
use crate::rig::MeasurementRig;
use diskperf_battery::{Medium, ProgramError, SecondTarget};
use diskperf_device::AccessHint;
use diskperf_device::WhatIf;
use diskperf_device::disk::device::MediaCacheState;
use diskperf_device::moment;
use diskperf_machine::hardware::cache::CacheStatistics;
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{
    Machine, Pipe, PipeEnd, RunBudget, RunConditions, RunEndReason, WorkerRendezvous,
};
use diskperf_system::model::{ModelPorts, ModelWorker};
use diskperf_system::{Buffer, System, WorkerProgress};
use diskperf_timeline::{
    ControllerCache, Engine, FlashTraffic, MediaCache, Nanoseconds, ProgramResult, Repetition,
    Trace,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const DRIVE_FOLDER: &str = "foo/";

/// Configuration of a modelled machine for its programs.
#[derive(Clone)]
pub struct BenchUsage {
    /// Name of the computer, as the user gave it.
    pub system_name: String,
    /// Number of drives that run each program together.
    pub drive_count: usize,
    /// Whether one more drive has a file system, as a copy destination.
    pub has_other_volume: bool,
    /// Seed of all random choices of the machine and the programs.
    pub seed: u64,
    /// Start angle of the first drive, in units of 2^-32 revolutions.
    pub first_phase: u32,
    /// Start angle of each further drive relative to the one before it, in units of 2^-32
    /// revolutions.
    pub spindle_phase: u32,
    /// Share by which each drive turns slower than the one before it.
    pub speed_difference_share: f64,
    /// Whether the virtual time of each call is recorded.
    pub times_calls: bool,
    /// Whether every cache is dropped before each repetition.
    pub drops_all_caches: bool,
    /// Whether events of the machine are recorded, for [`ModelBench::take_trace`].
    pub records_trace: bool,
    /// Whether the requests to drives are reported to the observer.
    pub records_requests: bool,
    /// Hypothesis about the machine, for counterfactual runs.
    pub what_if: WhatIf,
    /// Budget for all machines with this configuration together.
    pub budget: RunBudget,
    /// Number of events of the simulation that all these machines have used so far.
    pub event_count: Arc<AtomicU64>,
    /// Flag that is set when the user ends the run.
    pub stop: Arc<AtomicBool>,
}

impl BenchUsage {
    /// Creates the configuration for some drives of a system, each at its nominal speed, with the
    /// usual budget.
    pub fn for_system((system, drives): (&str, usize), seed: u64, stop: &Arc<AtomicBool>) -> Self {
        Self {
            system_name: system.to_owned(),
            drive_count: drives,
            has_other_volume: false,
            seed,
            first_phase: 0,
            spindle_phase: 0,
            speed_difference_share: 0.0,
            times_calls: false,
            drops_all_caches: false,
            records_trace: false,
            records_requests: false,
            what_if: WhatIf::default(),
            budget: RunBudget::DEFAULT,
            event_count: Arc::default(),
            stop: Arc::clone(stop),
        }
    }
}

/// A modelled machine with fresh file systems. Its clock continues from repetition to repetition,
/// like that of the machine in the paper.
pub struct ModelBench {
    /// Modelled machine, whose clock continues from repetition to repetition.
    pub machine: Machine,
    usage: BenchUsage,
    drive_of_volume: Vec<u32>,
    medium: Medium,
    next_file: Cell<usize>,
    /// Data that the workers write, by file, call size and seed. It is the same in every
    /// repetition, and making it would take longer than writing it.
    worker_buffers: Rc<RefCell<BTreeMap<BufferKey, Buffer>>>,
}

type WorkerResult = Result<WorkerOutcome, ProgramError>;

type BufferKey = (&'static str, u64, u64);

impl ModelBench {
    /// Builds the machine and creates the directory of the script.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine exceeds its budget or comes to a standstill.
    pub fn build(
        specification: &MachineSpecification,
        usage: BenchUsage,
    ) -> Result<Self, LaboratoryError> {
        let circumstances = RunConditions {
            seed: usage.seed,
            volume_count: usage.drive_count + usize::from(usage.has_other_volume),
            phase_step: usage.spindle_phase,
            first_phase: usage.first_phase,
            speed_difference_share: usage.speed_difference_share,
            records_trace: usage.records_trace,
            records_events: usage.records_requests,
            counterfactual: usage.what_if,
            budget: usage.budget,
            earlier_event_count: usage.event_count.load(Ordering::Relaxed),
            ..RunConditions::default()
        };
        let volumes = circumstances.volume_count;
        let memory = specification.memory_requirement(volumes);
        memory
            .require_within_budget(usage.budget)
            .map_err(|exceeded| LaboratoryError::Budget(exceeded.into()))?;
        let bench = Self {
            machine: Machine::build(specification, circumstances),
            medium: medium_of_specification(specification),
            usage,
            next_file: Cell::new(0),
            worker_buffers: Rc::default(),
            drive_of_volume: specification
                .volumes
                .iter()
                .map(|volume| volume.drive as u32)
                .collect(),
        };
        if bench.medium == Medium::Directory {
            bench.make_folders(volumes)?;
        }
        Ok(bench)
    }

    fn make_folders(&self, drives: usize) -> Result<(), LaboratoryError> {
        let failed = Rc::new(RefCell::new(None));
        let meeting = WorkerRendezvous::new(1);
        let ports = self.worker_ports(&meeting, &Arc::default(), Vec::new());
        let kernel = self.machine.kernel().clone();
        let outcome = Rc::clone(&failed);
        self.machine.spawn_process("mkdir", async move {
            let mut system =
                System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
            for drive in 0..drives {
                let folder = DRIVE_FOLDER.trim_end_matches('/');
                if let Err(error) = system.mkdir(&format!("/mnt{drive}/{folder}")).await {
                    *outcome.borrow_mut() = Some(error);
                }
            }
            system.end_session().await;
        });
        self.run_machine()?;
        match failed.take() {
            Some(diskperf_system::Error::Interrupted) => Err(LaboratoryError::Interrupted),
            Some(error) => Err(LaboratoryError::work(error)),
            None => Ok(()),
        }
    }

    fn worker_ports(
        &self,
        meeting: &Rc<WorkerRendezvous>,
        progress: &Arc<WorkerProgress>,
        pipe_ends: Vec<PipeEnd>,
    ) -> ModelPorts {
        let number = self.next_file.get();
        self.next_file.set(number + 1);
        ModelPorts {
            process_number: number,
            pipe_ends,
            rendezvous: Rc::clone(meeting),
            times_calls: self.usage.times_calls,
            stop_requested: Arc::clone(&self.usage.stop),
            progress: Arc::clone(progress),
        }
    }

    fn run_machine(&self) -> Result<(), LaboratoryError> {
        let outcome = self.machine.run_unless_stopped(&self.usage.stop);
        let events = self.machine.event_count();
        self.usage.event_count.store(events, Ordering::Relaxed);
        outcome.map_err(|standstill| match standstill {
            RunEndReason::StoppedByUser => LaboratoryError::Interrupted,
            RunEndReason::LimitExceeded(exceeded) => LaboratoryError::Budget(exceeded.into()),
            other => LaboratoryError::work(other),
        })
    }
}

impl MeasurementRig for ModelBench {
    fn list_assignments(&self, tasks: &[JobTask<'_>]) -> Vec<WorkerAssignment> {
        let ground = StorageSetup {
            drive_media: vec![self.medium; self.usage.drive_count],
            folder_name: DRIVE_FOLDER,
            other_medium: self.usage.has_other_volume.then_some(SecondTarget {
                drive_number: self.usage.drive_count as u32,
                medium: self.medium,
            }),
            seed: self.usage.seed,
            drop_all_caches: self.usage.drops_all_caches,
        };
        ground.list_assignments(tasks)
    }

    fn run_assignments(
        &self,
        (assignments, workers): (&[WorkerAssignment], &[Arc<WorkerProgress>]),
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, LaboratoryError> {
        let meeting = WorkerRendezvous::new(assignments.len());
        let none_yet: Vec<Option<WorkerResult>> = assignments.iter().map(|_| None).collect();
        let outcomes = Rc::new(RefCell::new(none_yet));
        let mut pipes = PipeEnds::default();
        for (number, (assignment, progress)) in assignments.iter().zip(workers).enumerate() {
            let assignment = assignment.clone();
            let Ok(end) = pipes.take_end(&assignment, || Ok::<_, Infallible>(Pipe::make_ends()));
            let ports = self.worker_ports(&meeting, progress, end.into_iter().collect());
            let kernel = self.machine.kernel().clone();
            let outcomes = Rc::clone(&outcomes);
            let buffers = Rc::clone(&self.worker_buffers);
            let name = format!("worker {number}");
            self.machine.spawn_process(&name, async move {
                let program = &assignment.program;
                let seed = assignment.worker.random_seed;
                let key = (program.file_name(), program.call_bytes(), seed);
                let kept = buffers.borrow_mut().remove(&key);
                let mut buffer =
                    kept.unwrap_or_else(|| assignment.program.new_short_buffer(&assignment.worker));
                let mut system =
                    System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
                let outcome = measure_worker(&mut system, &assignment, &mut buffer).await;
                if outcome.is_err() {
                    system.abandon_run();
                }
                system.end_session().await;
                buffers.borrow_mut().insert(key, buffer);
                outcomes.borrow_mut()[number] = Some(outcome);
            });
        }
        let caches = self.machine.controller_cache_statistics();
        let media_caches = self.machine.media_cache_states();
        let flash = self.machine.flash_traffic();
        self.run_machine()?;
        let outcomes = outcomes.take().into_iter();
        let outcomes = outcomes.map(|outcome| outcome.expect("every worker has ended"));
        let outcomes: Vec<WorkerResult> = outcomes.collect();
        if self.usage.records_requests {
            self.report_events(&outcomes, observer);
        }
        let names = StorageNames::for_model(&self.usage.system_name, self.usage.drive_count);
        let made = collect_repetitions((assignments, &names), outcomes);
        let mut repetitions = made.map_err(|WorkerError { title, error }| {
            LaboratoryError::program(&title, &names, &error)
        })?;
        let caches = self.controller_caches_since(&caches);
        let media_caches = self.media_caches_since(&media_caches);
        let flash = self.flash_since(&flash);
        for repetition in &mut repetitions {
            // Workers count volumes; rates are of drives, of which several volumes may be
            // parts.
            for worker in &mut repetition.workers {
                worker.drive_index = self.drive_of_volume[worker.drive_index as usize];
            }
            repetition.controller_caches.clone_from(&caches);
            repetition.media_caches.clone_from(&media_caches);
            repetition.flash_traffic.clone_from(&flash);
        }
        Ok(repetitions)
    }

    fn describe_result(&self, result: &ProgramResult) -> Option<String> {
        let mut loads = result
            .kept_repetitions()
            .flat_map(Repetition::load_measures);
        let under_way = loads.find(|load| load.engine != Engine::Calls);
        let note = under_way.and_then(|_| self.machine.kernel().ring_emulation_note());
        note.map(str::to_owned)
    }
}

impl ModelBench {
    /// Describes the recorded requests, with the names of their drives.
    pub fn event_source(&self) -> EventSource {
        EventSource {
            devices: self
                .machine
                .drive_busy_times()
                .iter()
                .enumerate()
                .map(|(number, _)| format!("drive{}", number + 1))
                .collect(),
            description: format!(
                "requests from the moment that {} until it takes their completion, in virtual time",
                match self.machine.is_rig() {
                    true => "a program gives them to the drive",
                    false => "the kernel gives them to the driver",
                }
            ),
        }
    }

    /// Reports the requests to drives since the last report, and marks those in the timed part of
    /// these workers.
    fn report_events(&self, outcomes: &[WorkerResult], observer: &mut dyn Observer) {
        let events = self.machine.take_events();
        let parts = outcomes.iter().flatten().map(|one| one.timed_part(0));
        let (began, ended) = parts.fold(
            (Nanoseconds(u64::MAX), Nanoseconds::ZERO),
            |(began, ended), part| (began.min(part.started_at), ended.max(part.ended_at)),
        );
        let (before, rest) =
            events.split_at(events.partition_point(|event| event.event_time < began));
        let (inside, after) =
            rest.split_at(rest.partition_point(|event| event.event_time <= ended));
        let mut say = |recorded| observer.handle_event(ObserverEvent::RequestsRecorded(recorded));
        say(RecordedEvent::RequestEvents(before));
        if began <= ended {
            say(RecordedEvent::RecordingStarted(began));
            say(RecordedEvent::RequestEvents(inside));
            say(RecordedEvent::RecordingEnded(ended));
        }
        say(RecordedEvent::RequestEvents(after));
    }

    /// Returns the events since the machine was built or since the last call; `None` unless
    /// [`BenchUsage::records_trace`] is set.
    pub fn take_trace(&self) -> Option<Trace> {
        self.machine.take_trace()
    }

    /// Returns the changes in the statistics of the controllers' caches since `before`, for the
    /// classes that were read.
    fn controller_caches_since(
        &self,
        before: &[(usize, [CacheStatistics; 3])],
    ) -> Vec<ControllerCache> {
        let mut all = Vec::new();
        for ((number, now), (_, before)) in self
            .machine
            .controller_cache_statistics()
            .into_iter()
            .zip(before)
        {
            for class in AccessHint::ALL {
                let (now, before) = (now[class as usize], before[class as usize]);
                if now.read_count > before.read_count {
                    all.push(ControllerCache {
                        controller_index: number as u32 + 1,
                        request_class: class.name().to_owned(),
                        read_count: now.read_count - before.read_count,
                        hit_count: now.hit_count - before.hit_count,
                        read_sectors: now.read_sectors - before.read_sectors,
                        cached_read_sectors: now.read_sectors_cached - before.read_sectors_cached,
                    });
                }
            }
        }
        all
    }

    /// Returns the changes in the statistics of shingled disks' media caches since `before`.
    fn media_caches_since(&self, before: &[(usize, MediaCacheState)]) -> Vec<MediaCache> {
        let of =
            |((number, now), (_, before)): ((usize, MediaCacheState), &(_, MediaCacheState))| {
                MediaCache {
                    drive_index: number as u32 + 1,
                    used_bytes: now.used_bytes,
                    capacity_bytes: now.capacity_bytes,
                    extent_count: now.extent_count,
                    extent_count_max: now.extents_max,
                    cached_bytes: now.cached_bytes - before.cached_bytes,
                    streamed_bytes: now.streamed_bytes - before.streamed_bytes,
                    cleaned_bytes: now.cleaned_bytes - before.cleaned_bytes,
                    direct_write_bytes: now.past_cache_bytes - before.past_cache_bytes,
                    cleaned_band_count: now.cleaned_band_count - before.cleaned_band_count,
                    cleaning_time: moment(now.cleaning_time - before.cleaning_time),
                }
            };
        let all = self.machine.media_cache_states().into_iter();
        all.zip(before).map(of).collect()
    }

    fn flash_since(&self, before: &[FlashTraffic]) -> Vec<FlashTraffic> {
        let now = self.machine.flash_traffic();
        let since = |(now, before): (FlashTraffic, &FlashTraffic)| now.traffic_since(before);
        now.into_iter().zip(before).map(since).collect()
    }

    /// Checks every file system as fsck does.
    ///
    /// # Errors
    ///
    /// Returns the fault of a file system. Nothing measured on it is valid.
    pub fn check_events(&self) -> Result<(), LaboratoryError> {
        let drives = self.usage.drive_count + usize::from(self.usage.has_other_volume);
        let mounted = if self.medium == Medium::Directory {
            drives
        } else {
            0
        };
        for drive in 0..mounted {
            self.machine.check_file_system(drive).map_err(|problems| {
                LaboratoryError::Failure(format!(
                    "the file system of drive {} is not consistent: {}",
                    drive + 1,
                    problems.join("; ")
                ))
            })?;
        }
        Ok(())
    }
}
