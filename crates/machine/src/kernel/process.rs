//! Processes of a kernel and their use of the processors.

mod clock;
mod cpu;
#[cfg(test)]
mod tests;
mod working_for;

pub(crate) use cpu::Cpus;

use super::computer::Computer;
use super::tracing::traced_work;
use crate::books::StageAccount;
use diskperf_sim::{CpuId, InterruptLevel, TaskId, Time, Usage};
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Ledger, Stage};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, ready};
use working_for::ClientWork;

/// Interrupt level of the disks. The kernel masks it with `splbio`.
pub(crate) const BIO_LEVEL: InterruptLevel = 5;
pub(crate) const CLOCK_LEVEL: InterruptLevel = 6;
/// Interrupt level of the work that the clock defers.
pub(crate) const SOFT_CLOCK_LEVEL: InterruptLevel = 1;

/// Process of a modelled kernel, with the account of its time.
pub struct Process {
    /// Process number, in order of creation. A daemon that works for a process has the number of
    /// that process.
    pub pid: usize,
    /// Scheduling rank. A woken process goes before processes of lower rank.
    dispatch_rank: u8,
    task_id: Cell<Option<TaskId>>,
    /// Processor that the process used last; `None` before the first.
    current_cpu: Cell<Option<CpuId>>,
    runnable_since: Cell<Time>,
    is_in_user_mode: Cell<bool>,
    /// Clock ticks that found the process in user mode, and in the kernel.
    user_and_system_ticks: Cell<(u64, u64)>,
    /// Account of the process's time by stage. A daemon's account keeps every time span.
    stage_account: StageAccount,
    /// Traced routines that the process has run since it began.
    work_records: RefCell<Vec<TracedWork>>,
    /// Process that a daemon works for; `None` for any other process.
    client: Option<Rc<Process>>,
    has_daemons: Cell<bool>,
    /// Processor work of the process's daemons since the process last gave up its processor.
    client_work: RefCell<Vec<ClientWork>>,
}

/// Time account of a process with the clock ticks since the account was opened.
pub(crate) struct TickedAccount {
    pub(crate) ledger: Ledger,
    /// Clock ticks that found the process in user mode.
    pub(crate) user_tick_count: u64,
    /// Clock ticks that found the process in the kernel.
    pub(crate) system_tick_count: u64,
}

impl Deref for Process {
    type Target = StageAccount;

    #[inline]
    fn deref(&self) -> &StageAccount {
        &self.stage_account
    }
}

/// Context in which kernel code runs: a process, which is charged for the time, or an interrupt
/// handler on a processor.
#[derive(Clone, Copy)]
pub(crate) enum ExecutionContext<'a> {
    InProcess(&'a Process),
    InHandler(CpuId),
}

impl ExecutionContext<'_> {
    /// Returns the processor on which the code runs.
    #[inline]
    pub(crate) fn cpu(self) -> CpuId {
        match self {
            Self::InProcess(process) => process.current_cpu(),
            Self::InHandler(cpu) => cpu,
        }
    }
}

/// Future of the processor time that kernel code spends. It is a separate future and not an async
/// function because it is nearly always ready on the first poll, and then costs nothing.
#[must_use]
pub(crate) struct ProcessorSpending<'a> {
    kernel: &'a Computer,
    context: ExecutionContext<'a>,
    stage: Stage,
    processor_cost: Time,
    has_started: bool,
}

impl Future for ProcessorSpending<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let kernel = this.kernel;
        if !this.has_started
            && kernel.try_spend_immediately(this.context, this.stage, this.processor_cost)
        {
            return Poll::Ready(());
        }
        kernel.poll_spending(this)
    }
}

impl Process {
    /// Creates a process of rank 0 that has not run yet.
    pub(crate) fn new(pid: usize) -> Rc<Self> {
        Self::with_rank(pid, 0)
    }

    /// Creates a process of a scheduling rank. Minix's server and tasks have a rank above that of
    /// programs.
    pub(crate) fn with_rank(pid: usize, rank: u8) -> Rc<Self> {
        Rc::new(Self::new_process(pid, rank))
    }

    fn new_process(pid: usize, rank: u8) -> Self {
        Self {
            pid,
            dispatch_rank: rank,
            task_id: Cell::new(None),
            current_cpu: Cell::new(None),
            runnable_since: Cell::new(Time::ZERO),
            is_in_user_mode: Cell::new(true),
            user_and_system_ticks: Cell::new((0, 0)),
            stage_account: StageAccount::new(),
            work_records: RefCell::default(),
            client: None,
            has_daemons: Cell::new(false),
            client_work: RefCell::default(),
        }
    }

    /// Returns the simulation task in which the process runs.
    ///
    /// # Panics
    ///
    /// Panics before the process has started.
    pub(crate) fn task_id(&self) -> TaskId {
        self.task_id.get().expect("the process has started")
    }

    /// Returns the processor that the process has, or had last. Returns the first processor before
    /// it had any.
    #[inline]
    pub(crate) fn current_cpu(&self) -> CpuId {
        self.current_cpu.get().unwrap_or_default()
    }

    /// Returns the time at which the process last became ready to run.
    pub(crate) fn runnable_since(&self) -> Time {
        self.runnable_since.get()
    }

    /// Books a waiting time in a stage, from `from` until the process became ready to run.
    pub(crate) fn book_wait(&self, stage: Stage, from: Time) {
        let until = self.runnable_since();
        self.book_stage(stage, until, until - from);
    }

    /// Records the work of a routine that has just ended, if the process is traced.
    #[inline]
    fn trace_work(&self, now: Time, stage: Stage, usage: Usage) {
        if self.is_traced() {
            self.store_work(now, stage, usage);
        }
    }

    /// Records the work of a routine. The record of a daemon's work goes to the process that the
    /// daemon works for.
    #[cold]
    fn store_work(&self, now: Time, stage: Stage, usage: Usage) {
        if let Some(client) = &self.client {
            client.record_client_work(now, stage, usage);
            client.trace_work(now, stage, usage);
        } else {
            let work = traced_work(now, stage, usage);
            self.work_records.borrow_mut().extend(work);
        }
    }

    /// Returns the traced routines that the process has run.
    pub(crate) fn traced_work(&self) -> Vec<TracedWork> {
        self.work_records.borrow().clone()
    }

    /// Returns the host memory of the process's trace records, in bytes.
    pub(crate) fn traced_bytes(&self) -> usize {
        let work = self.work_records.borrow().capacity() * size_of::<TracedWork>();
        work + self.tiling_bytes()
    }

    /// Resets the time account and the tick counts of the process.
    pub(crate) fn open_account(&self, now: Time) {
        self.user_and_system_ticks.set((0, 0));
        self.start_account(now);
    }

    /// Adds bytes to the amount that drives were requested to read for the process.
    pub(crate) fn count_storage_read(&self, bytes: u32) {
        self.client()
            .stage_account
            .count_storage_read(u64::from(bytes));
    }

    /// Returns the time account since it was opened, with the clock ticks in user mode and in the
    /// kernel.
    ///
    /// # Panics
    ///
    /// Panics if the account does not sum to the elapsed time.
    pub(crate) fn account_until(&self, now: Time) -> TickedAccount {
        let (user, system) = self.user_and_system_ticks.get();
        TickedAccount {
            ledger: self.ledger_until(now),
            user_tick_count: user,
            system_tick_count: system,
        }
    }

    /// Charges a clock tick to the process. The tick counts as system time if the process was in
    /// the kernel, or if `for_it` says that another process was running for it.
    pub(crate) fn count_tick(&self, for_it: bool) {
        let (user, system) = self.user_and_system_ticks.get();
        self.user_and_system_ticks
            .set(if self.is_in_user_mode.get() && !for_it {
                (user + 1, system)
            } else {
                (user, system + 1)
            });
    }

    pub(crate) fn set_user_mode(&self, user: bool) {
        self.is_in_user_mode.set(user);
    }
}

impl Computer {
    /// Starts a process in the calling simulation task. Returns when the process has a processor.
    pub(crate) async fn begin_process(&self, process: &Rc<Process>) {
        process
            .task_id
            .set(Some(self.simulation.expect_current_task()));
        let is_traced = self.records.active_tracing.is_some() || process.client.is_some();
        process
            .stage_account
            .begin_timed_part(self.simulation.now(), is_traced);
        self.cpus.add_process(process);
        self.wait_for_processor(process, "the processor").await;
        self.book_cpu_wait(process);
    }

    pub(crate) fn end_process(&self, process: &Process) {
        self.cpus.remove_process(process);
    }

    /// Spends processor time in a stage, on behalf of a process or an interrupt handler.
    #[inline]
    pub(crate) fn spend_processor_time<'a>(
        &'a self,
        context: ExecutionContext<'a>,
        stage: Stage,
        cost: Time,
    ) -> ProcessorSpending<'a> {
        ProcessorSpending {
            kernel: self,
            context,
            stage,
            processor_cost: cost,
            has_started: false,
        }
    }

    /// Spends processor time without a simulation event, if no other event can interfere. Returns
    /// `false` otherwise. This is by far the most frequent case.
    fn try_spend_immediately(
        &self,
        context: ExecutionContext<'_>,
        stage: Stage,
        cost: Time,
    ) -> bool {
        let Some(slowed) = self.cpus.processors[context.cpu()].try_work(&self.simulation, cost)
        else {
            return false;
        };
        if stage == Stage::Driver {
            self.cpus.add_driver_time(cost);
        }
        let usage = Usage {
            work_time: cost,
            interrupted_time: Time::ZERO,
            slowdown_time: slowed,
        };
        match context {
            ExecutionContext::InProcess(process) => {
                let now = self.simulation.now();
                process.book_stage(stage, now - slowed, cost);
                if slowed > Time::ZERO {
                    process.book_stage(Stage::MemoryContention, now, slowed);
                }
                process.trace_work(now, stage, usage);
            }
            ExecutionContext::InHandler(_) => self.trace_handler(stage, usage),
        }
        true
    }

    /// Spends processor time that interrupts or other events have interrupted or may interrupt.
    #[inline(never)]
    fn poll_spending(&self, spending: &mut ProcessorSpending<'_>) -> Poll<()> {
        let ProcessorSpending {
            context,
            stage,
            processor_cost: cost,
            has_started: ref mut started,
            ..
        } = *spending;
        let processor = &self.cpus.processors[context.cpu()];
        let usage = ready!(processor.poll_work(&self.simulation, started, cost));
        if stage == Stage::Driver {
            self.cpus.add_driver_time(usage.work_time);
        }
        let now = self.simulation.now();
        match context {
            ExecutionContext::InProcess(process) => {
                let slowed = now - usage.interrupted_time;
                process.book_stage(stage, slowed - usage.slowdown_time, usage.work_time);
                process.book_stage(Stage::MemoryContention, slowed, usage.slowdown_time);
                process.book_stage(Stage::Interrupt, now, usage.interrupted_time);
                process.trace_work(now, stage, usage);
            }
            ExecutionContext::InHandler(_) => self.trace_handler(stage, usage),
        }
        Poll::Ready(())
    }

    /// Lowers the interrupt mask to a level, and serves the interrupts that were masked (`splx`).
    pub(crate) async fn unmask_interrupts(
        &self,
        context: ExecutionContext<'_>,
        level: InterruptLevel,
    ) {
        let interrupted = self.cpus.processors[context.cpu()]
            .unmask_interrupts(&self.simulation, level)
            .await;
        if let ExecutionContext::InProcess(process) = context {
            process.book_stage(Stage::Interrupt, self.simulation.now(), interrupted);
        }
    }

    /// Sleeps until [`Computer::wake_process`] makes the process ready. Books the wait for the processor
    /// after the wake-up; the caller books the time before it.
    pub(crate) async fn wait_for_wake_up(&self, process: &Process, what: &'static str) {
        process.clear_client_work();
        self.cpus.release_cpu(process);
        self.wait_for_processor(process, what).await;
        self.resume_after_park(process).await;
    }

    /// Resumes a process after [`Computer::wait_for_wake_up`]: books the wait for the processor and spends the
    /// time of a process switch.
    async fn resume_after_park(&self, process: &Process) {
        self.book_cpu_wait(process);
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::SystemCall,
            self.costs.process_switch_time,
        )
        .await;
    }

    /// Releases the processor of a process to the next ready process.
    pub(crate) fn release_processor(&self, process: &Process) {
        self.cpus.release_cpu(process);
    }

    /// Makes a process ready again. Returns when the process has a processor.
    pub(crate) async fn regain_processor(&self, process: &Rc<Process>) {
        self.cpus.make_ready(process, true);
        self.wait_for_processor(process, "the processor").await;
        self.book_cpu_wait(process);
    }

    async fn wait_for_processor(&self, process: &Process, what: &'static str) {
        while !self.cpus.is_running(process) {
            self.simulation.wait_in_place(what).await;
        }
    }

    fn book_cpu_wait(&self, process: &Process) {
        process.book_cpu_wait(process.runnable_since(), self.simulation.now());
    }

    /// Makes a sleeping process ready to run.
    pub(crate) fn wake_process(&self, process: &Rc<Process>) {
        self.cpus.make_ready(process, true);
    }

    /// Returns a process from the kernel to user mode. Gives the processor to another process first
    /// if the scheduler has asked for it.
    pub(crate) async fn return_to_user_mode(&self, process: &Rc<Process>) {
        if self.cpus.yields_processor(process) {
            self.wait_for_wake_up(process, "its turn on the processor")
                .await;
        }
        process.set_user_mode(true);
    }

    /// Sleeps until a point in virtual time, without the processor.
    pub(crate) async fn sleep_process_until(&self, process: &Rc<Process>, at: Time) {
        process.clear_client_work();
        self.release_processor(process);
        let from = self.simulation.now();
        self.simulation.sleep_until(at).await;
        let now = self.simulation.now();
        process.book_stage(Stage::Think, now, now - from);
        self.regain_processor(process).await;
    }
}
