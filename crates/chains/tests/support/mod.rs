//! Recordings as texts: one event a line, and the links that its operations must have.

use diskperf_chains::event::{
    BlockExtent, DeviceDescription, EventKind, FileIdentity, KernelEvent, KernelRecording,
    ReportedRequest, SoftInterrupt,
};
use diskperf_chains::identity::{
    BioAddress, CallKind, CommitStep, CpuNumber, FileInode, FunctionAddress, KernelDevice,
    OperationNumber, RequestAddress, RequestFlags, RequestOperation, RingRequestAddress,
    SwitchOutState, ThreadId, TransactionId, WorkAddress,
};
use diskperf_chains::{Chain, ChainLink, History};
use diskperf_spans::Nanoseconds;

/// Recording of a text, with the expected links of its operations.
#[derive(Default)]
pub(crate) struct Scenario {
    pub(crate) recording: KernelRecording,
    /// Expected chains: what is explained (`operation 1`, `ring 0`), and its links.
    pub(crate) expected: Vec<(String, Vec<String>)>,
    /// Chains that must be marked as incomplete.
    pub(crate) incomplete: Vec<String>,
}

/// Words of a line, taken from the front.
struct Words<'a>(std::str::SplitWhitespace<'a>, &'a str);

impl Words<'_> {
    fn word(&mut self) -> &str {
        self.0
            .next()
            .unwrap_or_else(|| panic!("a word is missing: {}", self.1))
    }

    fn number<T: std::str::FromStr>(&mut self) -> T {
        let line = self.1;
        let word = self.word();
        word.parse()
            .unwrap_or_else(|_| panic!("{word:?} is no number: {line}"))
    }

    fn device(&mut self) -> KernelDevice {
        let word = self.word().to_owned();
        let (major, minor) = word.split_once(':').expect("a device is MAJOR:MINOR");
        let number = |text: &str| text.parse().expect("a number of a device");
        KernelDevice::from_major_minor(number(major), number(minor))
    }

    fn extent(&mut self) -> BlockExtent {
        BlockExtent {
            device: self.device(),
            sector: self.number(),
            bytes: self.number(),
        }
    }

    /// Reads flags: an operation (R, W, F), then P (preflush), A (FUA), M (metadata), S (in a
    /// flush sequence).
    fn flags(&mut self) -> RequestFlags {
        let mut flags = RequestFlags::default();
        for letter in self.word().chars() {
            match letter {
                'R' => flags.operation = RequestOperation::Read,
                'W' => flags.operation = RequestOperation::Write,
                'F' => flags.operation = RequestOperation::Flush,
                'P' => flags.is_preflush = true,
                'A' => flags.is_fua = true,
                'M' => flags.is_metadata = true,
                'S' => flags.is_in_flush_sequence = true,
                other => panic!("{other:?} is no flag"),
            }
        }
        flags
    }

    fn request(&mut self) -> ReportedRequest {
        ReportedRequest {
            request: RequestAddress(self.number()),
            bio: Some(self.number()).filter(|bio| *bio != 0).map(BioAddress),
            extent: self.extent(),
            flags: self.flags(),
        }
    }
}

fn parse_kind(thread: ThreadId, words: &mut Words<'_>) -> EventKind {
    let name = words.word().to_owned();
    match name.as_str() {
        "bio_queue" => EventKind::BioQueue {
            bio: BioAddress(words.number()),
            extent: words.extent(),
            flags: words.flags(),
            file: words.0.next().map(|file| {
                let inode = file.strip_prefix("inode=").expect("inode=NUMBER");
                let (device, inode) = inode.split_once('/').expect("inode=MAJOR:MINOR/NUMBER");
                FileIdentity {
                    device: Words(device.split_whitespace(), device).device(),
                    inode: FileInode(inode.parse().expect("an inode")),
                }
            }),
        },
        "split" => EventKind::BioSplit {
            bio: BioAddress(words.number()),
            extent: words.extent(),
        },
        "getrq" => EventKind::BioRequestAllocated {
            bio: BioAddress(words.number()),
            extent: words.extent(),
        },
        "merge" => EventKind::BioMerge {
            bio: BioAddress(words.number()),
            extent: words.extent(),
        },
        "insert" => EventKind::RequestInsert(words.request()),
        "issue" => EventKind::RequestIssue(words.request()),
        "complete" => EventKind::RequestComplete {
            completed_bytes: words.number(),
            reported: words.request(),
        },
        "done" => EventKind::RequestDone {
            request: RequestAddress(words.number()),
        },
        "commit" => EventKind::JournalCommit {
            transaction: TransactionId(words.number()),
            step: match words.word() {
                "start" => CommitStep::Start,
                "locking" => CommitStep::Locking,
                "flushing" => CommitStep::Flushing,
                "logging" => CommitStep::Logging,
                _ => CommitStep::End,
            },
        },
        "throttle" => EventKind::DirtyThrottle {
            pause: Nanoseconds(words.number()),
        },
        "reclaim" => EventKind::ReclaimBegin,
        "reclaimed" => EventKind::ReclaimEnd,
        _ => parse_task_kind(thread, &name, words),
    }
}

fn parse_task_kind(thread: ThreadId, name: &str, words: &mut Words<'_>) -> EventKind {
    match name {
        "ring_submit" => EventKind::RingSubmit {
            request: RingRequestAddress(words.number()),
            user_data: words.number(),
            call: CallKind::Write,
        },
        "ring_async" => EventKind::RingQueueAsync {
            request: RingRequestAddress(words.number()),
        },
        "ring_worker" => EventKind::RingWorkerRuns {
            request: Some(words.number())
                .filter(|request| *request != 0)
                .map(RingRequestAddress),
        },
        "ring_complete" => EventKind::RingComplete {
            request: RingRequestAddress(words.number()),
        },
        "queue_work" => EventKind::WorkQueue {
            work: WorkAddress(words.number()),
            function: FunctionAddress(words.number()),
        },
        "start_work" => EventKind::WorkStart {
            work: WorkAddress(words.number()),
            function: FunctionAddress(words.number()),
        },
        "end_work" => EventKind::WorkEnd {
            work: WorkAddress(words.number()),
        },
        // `switch D 7`: this task sleeps and task 7 is next.
        "switch" => EventKind::Switch {
            previous: thread,
            previous_state: match words.word() {
                "R" => SwitchOutState::Runnable,
                "S" => SwitchOutState::Interruptible,
                _ => SwitchOutState::Uninterruptible,
            },
            next: ThreadId(words.number()),
        },
        "wake" => EventKind::Waking {
            target: ThreadId(words.number()),
        },
        "irq" => EventKind::InterruptEntry,
        "irq_end" => EventKind::InterruptExit,
        "raise" => EventKind::SoftInterruptRaise {
            vector: SoftInterrupt::Block,
        },
        "softirq" => EventKind::SoftInterruptEntry {
            vector: SoftInterrupt::Block,
        },
        "softirq_end" => EventKind::SoftInterruptExit {
            vector: SoftInterrupt::Block,
        },
        "timer" => EventKind::TimerEntry,
        "timer_end" => EventKind::TimerExit,
        "begin" => EventKind::OperationStart {
            operation: OperationNumber(words.number()),
            call: CallKind::Fsync,
        },
        "end" => EventKind::OperationEnd {
            operation: OperationNumber(words.number()),
        },
        "loss" => EventKind::Loss {
            since: Nanoseconds(words.number()),
            count: words.number(),
        },
        other => panic!("{other:?} is no event"),
    }
}

impl Scenario {
    /// Reads a scenario: `TIME CPU THREAD EVENT ...`, `loop DEVICE`, `function ADDRESS NAME`,
    /// `expect WHAT NUMBER: LINK; LINK ...` and `incomplete WHAT NUMBER`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut scenario = Self::default();
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""));
        for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
            scenario.parse_line(line);
        }
        scenario
    }

    fn parse_line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("expect ") {
            let (what, links) = rest.split_once(':').expect("expect WHAT: LINKS");
            let links = links.split(';').map(|link| link.trim().to_owned());
            self.expected
                .push((what.trim().to_owned(), links.collect()));
            return;
        }
        if let Some(what) = line.strip_prefix("incomplete ") {
            self.incomplete.push(what.trim().to_owned());
            return;
        }
        let mut words = Words(line.split_whitespace(), line);
        match line.split_whitespace().next() {
            Some("loop") => {
                words.word();
                let device = words.device();
                let description = DeviceDescription {
                    name: format!("loop{}", device.minor()),
                    disk: device,
                    backing_file: Some(FileIdentity::default()),
                };
                self.recording.devices.insert(device, description);
            }
            Some("function") => {
                words.word();
                let address = FunctionAddress(words.number());
                let name = words.word().to_owned();
                self.recording.functions.insert(address, name);
            }
            _ => {
                let time = Nanoseconds(words.number());
                let cpu = CpuNumber(words.number());
                let thread = ThreadId(words.number());
                let kind = parse_kind(thread, &mut words);
                self.recording.events.push(KernelEvent {
                    time,
                    cpu,
                    thread,
                    kind,
                });
            }
        }
    }
}

/// Returns the chains of a recording by the names that scenarios use.
pub(crate) fn list_chains(recording: &KernelRecording) -> Vec<(String, Chain)> {
    let history = History::from_recording(recording);
    let of_ring = history.ring_requests().iter().filter_map(|request| {
        let chain = history.explain_ring_request(request)?;
        Some((format!("ring {}", request.user_data), chain))
    });
    let operations = history.operations().iter();
    let of_tasks = operations.map(|operation| {
        let chain = history.explain_operation(operation);
        let length = operation.end.since(operation.start);
        assert_eq!(chain.duration(), length, "operation {}", operation.number);
        (format!("operation {}", operation.number), chain)
    });
    of_tasks.chain(of_ring).collect()
}

/// Formats a link as scenarios write it: `STAGE PURPOSE THREAD NANOSECONDS`.
pub(crate) fn format_link(link: &ChainLink) -> String {
    format!(
        "{} {} {} {}",
        link.stage.name(),
        link.purpose.name(),
        link.thread,
        link.duration().0
    )
}
