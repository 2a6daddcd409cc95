//! Processes, and which of them have the processors.

mod clock;
mod cpu;
#[cfg(test)]
mod tests;
mod working_for;

pub(crate) use cpu::Cpus;

use super::computer::Computer;
use super::tracing::traced_work;
use crate::books::Books;
use diskperf_sim::{CpuId, Level, TaskId, Time, Usage};
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Ledger, Stage};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, ready};
use working_for::Worked;

/// The interrupt level at which disks interrupt; masking it is `splbio`.
pub(crate) const BIO: Level = 5;
/// The level of the clock.
pub(crate) const CLOCK: Level = 6;
/// The level of what the clock leaves for later.
pub(crate) const SOFT_CLOCK: Level = 1;

/// A process.
pub struct Process {
    /// Its number, in order of creation; of a daemon of a process, that of the process.
    pub pid: usize,
    /// Who is woken goes before those of lower rank.
    rank: u8,
    task: Cell<Option<TaskId>>,
    /// The processor that it had last; none before the first.
    cpu: Cell<Option<CpuId>>,
    runnable_at: Cell<Time>,
    in_user_mode: Cell<bool>,
    /// Ticks of the clock that found it in user mode, and in the kernel.
    ticks: Cell<(u64, u64)>,
    /// Where its time went; of a daemon, all spans are kept.
    books: Books,
    /// The routines that it ran since it began, kept with it.
    work: RefCell<Vec<TracedWork>>,
    /// Of a daemon: the process that it works for.
    works_for: Option<Rc<Process>>,
    /// Whether others work for it.
    has_daemons: Cell<bool>,
    /// What these had the processor do since it last gave it up.
    worked: RefCell<Vec<Worked>>,
}

impl Deref for Process {
    type Target = Books;

    #[inline]
    fn deref(&self) -> &Books {
        &self.books
    }
}

/// Who runs kernel code: a process, whose time it is, or an interrupt on a processor.
#[derive(Clone, Copy)]
pub(crate) enum Context<'a> {
    Process(&'a Process),
    Handler(CpuId),
}

impl Context<'_> {
    /// The processor that the code runs on.
    #[inline]
    pub(crate) fn cpu(self) -> CpuId {
        match self {
            Self::Process(process) => process.cpu(),
            Self::Handler(cpu) => cpu,
        }
    }
}

/// Processor time being spent. A future of its own rather than an async
/// function: almost always it ends where it begins, and that costs nothing
/// then.
#[must_use]
pub(crate) struct Spending<'a> {
    kernel: &'a Computer,
    context: Context<'a>,
    stage: Stage,
    cost: Time,
    started: bool,
}

impl Future for Spending<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let kernel = this.kernel;
        if !this.started && kernel.spend_at_once(this.context, this.stage, this.cost) {
            return Poll::Ready(());
        }
        kernel.poll_spending(this)
    }
}

impl Process {
    /// A process that has not run yet.
    pub(crate) fn new(pid: usize) -> Rc<Self> {
        Self::ranked(pid, 0)
    }

    /// The same, with a rank: Minix's own processes go before programs.
    pub(crate) fn ranked(pid: usize, rank: u8) -> Rc<Self> {
        Rc::new(Self::made(pid, rank))
    }

    fn made(pid: usize, rank: u8) -> Self {
        Self {
            pid,
            rank,
            task: Cell::new(None),
            cpu: Cell::new(None),
            runnable_at: Cell::new(Time::ZERO),
            in_user_mode: Cell::new(true),
            ticks: Cell::new((0, 0)),
            books: Books::new(),
            work: RefCell::default(),
            works_for: None,
            has_daemons: Cell::new(false),
            worked: RefCell::default(),
        }
    }

    /// The task that it runs in.
    ///
    /// # Panics
    ///
    /// Before it has started.
    pub(crate) fn task(&self) -> TaskId {
        self.task.get().expect("the process has started")
    }

    /// The processor that it has, or had last.
    #[inline]
    pub(crate) fn cpu(&self) -> CpuId {
        self.cpu.get().unwrap_or_default()
    }

    /// When it was last made ready to run.
    pub(crate) fn runnable_at(&self) -> Time {
        self.runnable_at.get()
    }

    /// Books its waiting, from then until it was made ready to run.
    pub(crate) fn book_wait(&self, stage: Stage, from: Time) {
        let until = self.runnable_at();
        self.book(stage, until, until - from);
    }

    /// A routine of its has worked up to now.
    #[inline]
    fn trace_work(&self, now: Time, stage: Stage, usage: Usage) {
        if self.is_traced() {
            self.keep_work(now, stage, usage);
        }
    }

    /// Keeps what a routine did: for the process that it works for, if it is a daemon.
    #[cold]
    fn keep_work(&self, now: Time, stage: Stage, usage: Usage) {
        if let Some(client) = &self.works_for {
            client.worked_for(now, stage, usage);
            client.trace_work(now, stage, usage);
        } else {
            let work = traced_work(now, stage, usage);
            self.work.borrow_mut().extend(work);
        }
    }

    /// The routines that it ran since its account was opened.
    pub(crate) fn traced_work(&self) -> Vec<TracedWork> {
        self.work.borrow().clone()
    }

    /// Memory that its record takes.
    pub(crate) fn traced_bytes(&self) -> usize {
        let work = self.work.borrow().capacity() * size_of::<TracedWork>();
        work + self.tiling_bytes()
    }

    /// Starts the account anew.
    pub(crate) fn open_account(&self, now: Time) {
        self.ticks.set((0, 0));
        self.open(now);
    }

    /// Counts what a drive is told to read for it.
    pub(crate) fn count_storage_read(&self, bytes: u32) {
        self.client().books.count_storage_read(u64::from(bytes));
    }

    /// The account since it was opened, with the clock's ticks in user mode
    /// and in the kernel.
    ///
    /// # Panics
    ///
    /// When it does not sum to the time that has passed.
    pub(crate) fn account(&self, now: Time) -> (Ledger, u64, u64) {
        let (user, system) = self.ticks.get();
        (self.ledger(now), user, system)
    }

    /// One tick of the clock found it running, or found one running that
    /// works for it.
    pub(crate) fn tick(&self, for_it: bool) {
        let (user, system) = self.ticks.get();
        self.ticks.set(if self.in_user_mode.get() && !for_it {
            (user + 1, system)
        } else {
            (user, system + 1)
        });
    }

    pub(crate) fn enter_mode(&self, user: bool) {
        self.in_user_mode.set(user);
    }
}

/// Having the processor, and waiting for it.
impl Computer {
    /// A process that runs in the task that asks; returns when it has the
    /// processor.
    pub(crate) async fn begin(&self, process: &Rc<Process>) {
        process.task.set(Some(self.sim.current()));
        let is_traced = self.records.tracing.is_some() || process.works_for.is_some();
        process.books.begin(self.sim.now(), is_traced);
        self.cpus.begin(process);
        self.wait_for_processor(process, "the processor").await;
        self.book_cpu_wait(process);
    }

    /// The process ends.
    pub(crate) fn end(&self, process: &Process) {
        self.cpus.end(process);
    }

    /// Spends processor time in a stage.
    #[inline]
    pub(crate) fn spend<'a>(
        &'a self,
        context: Context<'a>,
        stage: Stage,
        cost: Time,
    ) -> Spending<'a> {
        Spending {
            kernel: self,
            context,
            stage,
            cost,
            started: false,
        }
    }

    /// The same, if nothing can come in between, which is by far the most
    /// frequent case.
    fn spend_at_once(&self, context: Context<'_>, stage: Stage, cost: Time) -> bool {
        let Some(slowed) = self.cpus.processors[context.cpu()].try_work(&self.sim, cost) else {
            return false;
        };
        if stage == Stage::Driver {
            self.cpus.count_driver(cost);
        }
        let usage = Usage {
            work: cost,
            interrupted: Time::ZERO,
            slowed,
        };
        match context {
            Context::Process(process) => {
                let now = self.sim.now();
                process.book(stage, now - slowed, cost);
                if slowed > Time::ZERO {
                    process.book(Stage::MemoryContention, now, slowed);
                }
                process.trace_work(now, stage, usage);
            }
            Context::Handler(_) => self.trace_handler(stage, usage),
        }
        true
    }

    /// Work that something has come in between, or may.
    #[inline(never)]
    fn poll_spending(&self, spending: &mut Spending<'_>) -> Poll<()> {
        let Spending {
            context,
            stage,
            cost,
            ref mut started,
            ..
        } = *spending;
        let processor = &self.cpus.processors[context.cpu()];
        let usage = ready!(processor.poll_work(&self.sim, started, cost));
        if stage == Stage::Driver {
            self.cpus.count_driver(usage.work);
        }
        let now = self.sim.now();
        match context {
            Context::Process(process) => {
                let slowed = now - usage.interrupted;
                process.book(stage, slowed - usage.slowed, usage.work);
                process.book(Stage::MemoryContention, slowed, usage.slowed);
                process.book(Stage::Interrupt, now, usage.interrupted);
                process.trace_work(now, stage, usage);
            }
            Context::Handler(_) => self.trace_handler(stage, usage),
        }
        Poll::Ready(())
    }

    /// Lets interrupts down to this level in again (splx).
    pub(crate) async fn unmask(&self, context: Context<'_>, level: Level) {
        let interrupted = self.cpus.processors[context.cpu()]
            .unmask(&self.sim, level)
            .await;
        if let Context::Process(process) = context {
            process.book(Stage::Interrupt, self.sim.now(), interrupted);
        }
    }

    /// Sleeps until [`Computer::wake`]; the time up to then is for the caller
    /// to book, the waiting for the processor after it is booked here.
    pub(crate) async fn park(&self, process: &Process, what: &'static str) {
        process.forget_worked();
        self.cpus.release(process);
        self.wait_for_processor(process, what).await;
        self.come_back(process).await;
    }

    /// The end of [`Computer::park`]: the process has the processor again.
    async fn come_back(&self, process: &Process) {
        self.book_cpu_wait(process);
        self.spend(
            Context::Process(process),
            Stage::SystemCall,
            self.costs.switch,
        )
        .await;
    }

    /// Lets somebody else have the processor.
    pub(crate) fn release_processor(&self, process: &Process) {
        self.cpus.release(process);
    }

    /// Wants it back; returns with it.
    pub(crate) async fn regain(&self, process: &Rc<Process>) {
        self.cpus.make_ready(process, true);
        self.wait_for_processor(process, "the processor").await;
        self.book_cpu_wait(process);
    }

    async fn wait_for_processor(&self, process: &Process, what: &'static str) {
        while !self.cpus.runs(process) {
            self.sim.wait_in_place(what).await;
        }
    }

    fn book_cpu_wait(&self, process: &Process) {
        process.book_cpu_wait(process.runnable_at(), self.sim.now());
    }

    /// A process that sleeps is ready to run again.
    pub(crate) fn wake(&self, process: &Rc<Process>) {
        self.cpus.make_ready(process, true);
    }

    /// On the way back to user mode: lets somebody else run who should.
    pub(crate) async fn back_to_user_mode(&self, process: &Rc<Process>) {
        if self.cpus.takes_turns(process) {
            self.park(process, "its turn on the processor").await;
        }
        process.enter_mode(true);
    }

    /// Sleeps until a moment, giving the processor up.
    pub(crate) async fn nap(&self, process: &Rc<Process>, at: Time) {
        process.forget_worked();
        self.release_processor(process);
        let from = self.sim.now();
        self.sim.sleep_until(at).await;
        let now = self.sim.now();
        process.book(Stage::Think, now, now - from);
        self.regain(process).await;
    }
}
