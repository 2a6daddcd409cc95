//! States of tasks over time, from the scheduler's events.

use crate::context::Origin;
use crate::identity::{CpuNumber, SwitchOutState, ThreadId};
use diskperf_spans::Nanoseconds;
use std::collections::BTreeMap;

/// State of a task during a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// It runs on a processor.
    Running,
    /// It is ready, and something else has the processor.
    Runnable,
    /// It waits, until the given origin wakes it. The origin is `None` where no event tells.
    Blocked(Option<Origin>),
    /// State between two events that another one must have separated.
    Unknown,
}

/// Span of time that a task spends in one state. It starts at the end of the span before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadSpan {
    /// Start of the span.
    pub(crate) start: Nanoseconds,
    /// End of the span.
    pub(crate) end: Nanoseconds,
    /// State of the task.
    pub(crate) state: ThreadState,
}

/// State of a task at the present time of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentState {
    Running {
        cpu: CpuNumber,
        /// Last time at which an event showed the task on the processor.
        seen_at: Nanoseconds,
        /// Whether it was woken since it got the processor: it was about to sleep.
        woken: bool,
    },
    Runnable,
    Blocked {
        /// Whether it was woken before it left the processor.
        woken: bool,
    },
    /// Another task has its processor, and the switch between them is missing.
    Displaced {
        /// Time at which the other task was seen.
        seen_at: Nanoseconds,
    },
    Unknown,
}

#[derive(Debug)]
struct ThreadTrack {
    spans: Vec<ThreadSpan>,
    since: Nanoseconds,
    current: CurrentState,
}

/// States of all tasks, in one pass over the events.
#[derive(Debug, Default)]
pub(crate) struct ThreadTracker {
    tracks: BTreeMap<ThreadId, ThreadTrack>,
    on_cpu: BTreeMap<CpuNumber, ThreadId>,
    /// Last recorded switch of each processor.
    last_switches: BTreeMap<CpuNumber, Nanoseconds>,
    started_at: Nanoseconds,
}

impl ThreadTrack {
    fn move_to(&mut self, time: Nanoseconds, state: ThreadState, next: CurrentState) {
        if time > self.since {
            self.spans.push(ThreadSpan {
                start: self.since,
                end: time,
                state,
            });
        }
        self.since = time;
        self.current = next;
    }

    /// Ends the time on a processor that another task is seen to have: from when the task was last
    /// seen there, its state is unknown.
    fn lose_processor(&mut self, time: Nanoseconds) {
        if let CurrentState::Running { seen_at, .. } = self.current {
            let displaced = CurrentState::Displaced { seen_at: time };
            self.move_to(seen_at, ThreadState::Running, displaced);
        }
    }
}

impl ThreadTracker {
    pub(crate) fn from_start(started_at: Nanoseconds) -> Self {
        Self {
            started_at,
            ..Self::default()
        }
    }

    fn track(&mut self, thread: ThreadId) -> &mut ThreadTrack {
        let since = self.started_at;
        self.tracks.entry(thread).or_insert(ThreadTrack {
            spans: Vec::new(),
            since,
            current: CurrentState::Unknown,
        })
    }

    /// Notes that a task has a processor, since it reports an event there.
    pub(crate) fn record_presence(&mut self, time: Nanoseconds, cpu: CpuNumber, thread: ThreadId) {
        if let Some(other) = self.on_cpu.insert(cpu, thread)
            && other != thread
        {
            let other = self.track(other);
            if matches!(other.current, CurrentState::Running { cpu: own, .. } if own == cpu) {
                other.lose_processor(time);
            }
        }
        if thread == ThreadId(0) {
            return;
        }
        let last_switch = self.last_switches.get(&cpu).copied();
        let track = self.track(thread);
        let now = |woken| CurrentState::Running {
            cpu,
            seen_at: time,
            woken,
        };
        match track.current {
            CurrentState::Running {
                cpu: own, woken, ..
            } if own == cpu => track.current = now(woken),
            CurrentState::Running { .. } => {
                track.lose_processor(time);
                track.move_to(time, ThreadState::Unknown, now(false));
            }
            // The switch to it is missing; a task seen on a processor has it, and did not have it
            // before the processor's last switch.
            CurrentState::Runnable => {
                let waited_until =
                    last_switch.map_or(track.since, |switch| switch.max(track.since));
                track.move_to(waited_until, ThreadState::Runnable, CurrentState::Unknown);
                track.move_to(time, ThreadState::Unknown, now(false));
            }
            CurrentState::Blocked { .. }
            | CurrentState::Displaced { .. }
            | CurrentState::Unknown => {
                track.move_to(time, ThreadState::Unknown, now(false));
            }
        }
    }

    pub(crate) fn record_switch(
        &mut self,
        (time, cpu): (Nanoseconds, CpuNumber),
        (previous, state): (ThreadId, SwitchOutState),
        next: ThreadId,
    ) {
        self.record_presence(time, cpu, previous);
        if previous != ThreadId(0) {
            let track = self.track(previous);
            let woken = matches!(track.current, CurrentState::Running { woken: true, .. });
            let next = match state {
                SwitchOutState::Runnable => CurrentState::Runnable,
                SwitchOutState::Interruptible
                | SwitchOutState::Uninterruptible
                | SwitchOutState::Other => CurrentState::Blocked { woken },
            };
            track.move_to(time, ThreadState::Running, next);
        }
        self.on_cpu.insert(cpu, next);
        self.last_switches.insert(cpu, time);
        if next != ThreadId(0) {
            self.switch_in(time, cpu, next);
        }
    }

    fn switch_in(&mut self, time: Nanoseconds, cpu: CpuNumber, thread: ThreadId) {
        let track = self.track(thread);
        let passed = match track.current {
            CurrentState::Runnable | CurrentState::Blocked { woken: true } => ThreadState::Runnable,
            CurrentState::Blocked { woken: false } => ThreadState::Blocked(None),
            CurrentState::Displaced { .. } | CurrentState::Unknown => ThreadState::Unknown,
            CurrentState::Running { .. } => {
                track.lose_processor(time);
                ThreadState::Unknown
            }
        };
        let running = CurrentState::Running {
            cpu,
            seen_at: time,
            woken: false,
        };
        track.move_to(time, passed, running);
    }

    pub(crate) fn record_waking(&mut self, time: Nanoseconds, target: ThreadId, origin: Origin) {
        let track = self.track(target);
        let waiting = ThreadState::Blocked(Some(origin));
        match &mut track.current {
            CurrentState::Blocked { .. } => {
                track.move_to(time, waiting, CurrentState::Runnable);
            }
            CurrentState::Running { woken, .. } => *woken = true,
            // A task that is woken sleeps, at the latest since another one had its processor.
            CurrentState::Displaced { seen_at } => {
                let seen_at = *seen_at;
                track.move_to(seen_at, ThreadState::Unknown, CurrentState::Unknown);
                track.move_to(time, waiting, CurrentState::Runnable);
            }
            // The first event of a task: it has waited since before the recording. Later, the
            // switch that would tell is missing.
            CurrentState::Unknown => {
                let state = if track.spans.is_empty() {
                    waiting
                } else {
                    ThreadState::Unknown
                };
                track.move_to(time, state, CurrentState::Runnable);
            }
            CurrentState::Runnable => {}
        }
    }

    /// Returns the spans of each task up to the end of the recording.
    pub(crate) fn into_spans(self, end: Nanoseconds) -> BTreeMap<ThreadId, Vec<ThreadSpan>> {
        let finish = |mut track: ThreadTrack| {
            let state = match track.current {
                CurrentState::Running { .. } => ThreadState::Running,
                CurrentState::Runnable => ThreadState::Runnable,
                CurrentState::Blocked { .. } => ThreadState::Blocked(None),
                CurrentState::Displaced { .. } | CurrentState::Unknown => ThreadState::Unknown,
            };
            track.move_to(end, state, CurrentState::Unknown);
            track.spans
        };
        let tracks = self.tracks.into_iter();
        tracks
            .map(|(thread, track)| (thread, finish(track)))
            .collect()
    }
}
