//! The device alone. These fail when a server serves two, when a queue overtakes itself,
//! when a distribution has another mean than it says, and when work is done in a stall.

use super::*;
use crate::Request;
use diskperf_sim::RandomStreams;

const MS: u64 = 1_000_000;

/// A device, the requests that it is asked for, and the present moment.
struct Bench {
    fixed: FixedDevice,
    requests: Requests,
    now: Time,
}

impl Bench {
    fn new(
        service: ServiceTime,
        (servers, queue_depth): (u32, u32),
        stalls: &[(u64, u64)],
    ) -> Self {
        let time = |(from, length): &(u64, u64)| (Time(from * MS), Time(length * MS));
        let config = FixedConfig {
            sectors: 1 << 20,
            sector_bytes: 512,
            service_time: service,
            server_count: servers,
            queue_depth,
            stall_periods: stalls.iter().map(time).collect(),
        };
        Self {
            fixed: FixedDevice::new(config, RandomStreams::new(5).named_stream("service")),
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// A request of now.
    fn ask_for(&mut self, sector: u64) {
        let mut request = Request {
            sector,
            sectors: 1,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.now));
        let id = self.requests.issue(request);
        self.fixed.accept_request(self.now, &mut self.requests, id);
    }

    /// The next that is done: its sector, and when it was.
    fn done(&mut self) -> (u64, u64) {
        if !self.fixed.has_completed_requests() {
            self.now = self.fixed.next_event().expect("a request is under way");
            assert!(self.fixed.advance(self.now, &mut self.requests));
        }
        let id = self.fixed.take_completed_request().expect("one is done");
        let request = self.requests.take_request(id);
        (request.sector, request.spans.marked_until().0 / MS)
    }
}

#[test]
fn servers_work_side_by_side_and_the_queue_is_in_order() {
    let mut on = Bench::new(ServiceTime::Constant(Time(4 * MS)), (2, 5), &[]);
    for sector in 0..5 {
        assert!(on.fixed.can_accept_request());
        on.ask_for(sector);
    }
    assert!(!on.fixed.can_accept_request());
    let ends = [(); 5].map(|()| on.done());
    assert_eq!(ends, [(0, 4), (1, 4), (2, 8), (3, 8), (4, 12)]);
    assert_eq!(on.requests.under_way(), 0);
    let moved = on.fixed.busy_times();
    assert_eq!(
        (moved.transferred_bytes, moved.transfer_count),
        (5 * 512, 5)
    );
}

/// One server and an exponential service under a closed load of one: nothing waits, and
/// the mean response is the mean service.
#[test]
fn distributions_have_their_means() {
    let quantiles = [1, 2, 9].map(|ms| Time(ms * MS)).to_vec();
    for (service, mean) in [
        (ServiceTime::Exponential(Time(3 * MS)), 3.0),
        (ServiceTime::Quantiles(quantiles), (1.5 + 5.5) / 2.0),
    ] {
        let mut on = Bench::new(service, (1, 1), &[]);
        let count = 20_000;
        for sector in 0..count {
            on.ask_for(sector);
            on.done();
        }
        let found = on.now.0 as f64 / count as f64 / MS as f64;
        assert!((found / mean - 1.0).abs() < 0.03, "{found} of {mean}");
    }
}

#[test]
fn nothing_is_done_in_a_stall() {
    let stalls = [(10, 5), (20, 100)];
    let mut on = Bench::new(ServiceTime::Constant(Time(4 * MS)), (1, 1), &stalls);
    let ends = [0, 1, 2, 3, 4].map(|sector| {
        on.ask_for(sector);
        on.done().1
    });
    // The third has done two of its four when the stall comes, the fourth one of
    // them before the second one.
    assert_eq!(ends, [4, 8, 17, 121, 125]);
}

/// Expectations 41 and 42 of the facts on disks, section 7: N who think for 20 ms and are
/// served for 10, both exponentially, one at a time: X requests a ms and R ms each; in every
/// run N = X (R + Z).
#[test]
fn repairmen_are_as_busy_as_theory_says() {
    const THINK_MS: f64 = 20.0;
    for (customers, rate, response_ms) in [
        (1, 0.033_33, 10.0),
        (2, 0.06, 13.33),
        (4, 0.090_48, 24.21),
        (8, 0.099_91, 60.07),
    ] {
        let service = ServiceTime::Exponential(Time(10 * MS));
        let mut on = Bench::new(service, (1, 8), &[]);
        let mut draws = RandomStreams::new(5).named_stream("thinking");
        let mut think = |now: Time| now + draws.draw_exponential(Time(THINK_MS as u64 * MS));
        let mut thinking: Vec<Time> = (0..customers).map(|_| think(Time::ZERO)).collect();
        let (mut asked, mut count, mut responses_ms) = (Vec::new(), 0, 0.0);
        while count < 100_000 {
            thinking.sort_unstable_by(|a, b| b.cmp(a));
            let next = thinking.last().copied().unwrap_or(Time::NEVER);
            let ends = on.fixed.next_event().unwrap_or(Time::NEVER);
            if next < ends {
                thinking.pop();
                on.now = next;
                asked.push(next);
                on.ask_for(asked.len() as u64 - 1);
            } else {
                let (number, _) = on.done();
                let came = asked[number as usize];
                responses_ms += (on.now - came).0 as f64 / MS as f64;
                count += 1;
                thinking.push(think(on.now));
            }
        }
        let elapsed_ms = on.now.0 as f64 / MS as f64;
        let found = (count as f64 / elapsed_ms, responses_ms / count as f64);
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.02;
        assert!(
            near(found.0, rate) && near(found.1, response_ms),
            "{customers}: {found:?}"
        );
        let all = found.0 * (found.1 + THINK_MS);
        assert!(near(all, f64::from(customers)), "{all} of {customers}");
    }
}
