//! A generator of arrivals that do not wait, on the device of which everything is known.

use crate::modelled;
use crate::requests::options;
use diskperf_machine::{RandomStream, RandomStreams, Time};
use diskperf_system::{
    EngineChoice, File, IoOperation, OpenOptions, RingOptions, Submission, System,
};
use diskperf_timeline::{LoadMeasure, Nanoseconds, WorkerMeasure};

/// How requests arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrivals {
    /// So far apart.
    Constant(Nanoseconds),
    /// At random moments, so far apart on average.
    Poisson(Nanoseconds),
}

impl Arrivals {
    fn next(self, draws: &mut RandomStream) -> Nanoseconds {
        match self {
            Self::Constant(apart) => apart,
            Self::Poisson(mean) => Nanoseconds(draws.draw_exponential(Time(mean.0)).0),
        }
    }
}

const SECTOR: u32 = 512;

/// So many requests on `bare-fixed` with these settings, at most so many under way.
pub(crate) fn offered(
    settings: &[&str],
    arrivals: Arrivals,
    (requests, depth): (u32, u32),
) -> LoadMeasure {
    let specification = modelled::specification("bare-fixed", settings);
    let machine = modelled::machine(&specification);
    let ran = modelled::run_alone(
        &machine,
        modelled::ports_alone(),
        async move |mut system| {
            let drive = system
                .open("/dev/drive0", OpenOptions::READ.with_direct(true))
                .await;
            let drive = drive.expect("the device");
            let ring = RingOptions {
                buffer_bytes: SECTOR,
                ..options(depth, EngineChoice::BestAvailable)
            };
            system.open_ring(ring, &[drive]).await.expect("a ring");
            let measure = generate(&mut system, drive, arrivals, (requests, depth)).await;
            (system, measure)
        },
    );
    let measure = ran.unwrap_or_else(|standstill| panic!("{standstill}"));
    assert_eq!(measure.ledger.total_duration(), measure.elapsed_time);
    let load = measure.load_measure.expect("there was a ring");
    assert_eq!(load.read.request_count(), u64::from(requests));
    load
}

async fn generate(
    system: &mut System,
    file: File,
    arrivals: Arrivals,
    (requests, depth): (u32, u32),
) -> WorkerMeasure {
    let mut draws = RandomStreams::new(9).named_stream("arrivals");
    system.start_measuring(system.now()).expect("it goes on");
    let mut free: Vec<u32> = (0..depth).collect();
    let mut next = system.now() + arrivals.next(&mut draws);
    let (mut issued, mut batch, mut completions) = (0, Vec::new(), Vec::new());
    let mut now = system.now();
    while issued < requests || free.len() < depth as usize {
        batch.clear();
        while issued < requests
            && next <= now
            && let Some(slot) = free.pop()
        {
            batch.push(Submission {
                operation: IoOperation::Read,
                file,
                offset_bytes: u64::from(issued % 1000 * SECTOR),
                bytes: SECTOR,
                slot,
                intended_start: Some(next),
            });
            issued += 1;
            next = next + arrivals.next(&mut draws);
        }
        if !batch.is_empty() {
            system.submit_requests(&batch).await.expect("a ring");
        }
        let until = (issued < requests && !free.is_empty()).then_some(next);
        now = system
            .reap_requests(1, until, &mut completions)
            .await
            .expect("a ring");
        free.extend(completions.drain(..).map(|completion| {
            assert_eq!(completion.byte_count_or_errno, Ok(SECTOR));
            completion.slot
        }));
    }
    system.finish_measuring().await.expect("it goes on")
}
