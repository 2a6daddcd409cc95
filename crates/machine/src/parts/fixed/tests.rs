//! The device alone. These fail when a server serves two, when a queue overtakes itself,
//! when a distribution has another mean than it says, and when work is done in a stall.

use super::*;
use crate::hardware::bare::Bare;
use crate::hardware::bench::*;
use crate::hardware::device::{Device, Sectors};
use crate::hardware::mechanism::Busy;
use crate::hardware::{Request, Requests};

const MS: u64 = 1_000_000;

fn device(service: Service, (servers, queue_depth): (u32, u32)) -> FixedConfig {
    FixedConfig {
        service,
        servers,
        queue_depth,
        stalls: Vec::new(),
    }
}

fn bench(config: FixedConfig) -> Rc<Bench<Fixed>> {
    let fixed = |id, number| Fixed::new((id, number), config, Streams::new(5));
    let bus = Bus::new(1_000_000_000, 0.0);
    let bench = Bare::new(Vec::new(), fixed, bus, Requests::default());
    bench.hardware.borrow_mut().drives = [Device::Sectors(Sectors {
        sector_bytes: 512,
        busy: Busy::default(),
    })]
    .into_iter()
    .collect();
    Rc::new(bench)
}

impl Bench<Fixed> {
    /// A request of now.
    fn ask_for(&self, sector: u64) -> RequestId {
        let mut request = Request {
            sector,
            sectors: 1,
            ..Request::default()
        };
        request.spans.issue(moment(self.sim.now()));
        let id = self.hardware.borrow_mut().requests.issue(request);
        self.ask(|fixed, around, parts| fixed.take(around, parts, id));
        id
    }

    /// The next that is done: its sector, and what its time went to.
    async fn done(&self) -> (u64, Request) {
        loop {
            if let Some(id) = self.ask(|fixed, _, _| fixed.take_done()) {
                let request = self.hardware.borrow_mut().requests.take(id);
                return (request.sector, request);
            }
            self.sim.wait("the device").await;
        }
    }
}

#[test]
fn servers_work_side_by_side_and_the_queue_is_in_order() {
    let on = bench(device(Service::Constant(Time(4 * MS)), (2, 5)));
    let inner = Rc::clone(&on);
    on.run(async move {
        for sector in 0..5 {
            assert!(inner.ask(|fixed, _, _| fixed.takes_requests()));
            inner.ask_for(sector);
        }
        assert!(!inner.ask(|fixed, _, _| fixed.takes_requests()));
        let mut ends = Vec::new();
        for _ in 0..5 {
            let (sector, request) = inner.done().await;
            ends.push((sector, request.spans.marked().0 / MS));
        }
        assert_eq!(ends, [(0, 4), (1, 4), (2, 8), (3, 8), (4, 12)]);
        assert_eq!(inner.hardware.borrow().requests.under_way(), 0);
        let moved = inner.hardware.borrow().drives.get(0).busy();
        assert_eq!((moved.bytes, moved.transfers), (5 * 512, 5));
    });
}

/// One server and an exponential service under a closed load of one: nothing waits, and
/// the mean response is the mean service.
#[test]
fn distributions_have_their_means() {
    let quantiles = [1, 2, 9].map(|ms| Time(ms * MS)).to_vec();
    for (service, mean) in [
        (Service::Exponential(Time(3 * MS)), 3.0),
        (Service::Quantiles(quantiles), (1.5 + 5.5) / 2.0),
    ] {
        let on = bench(device(service, (1, 1)));
        let inner = Rc::clone(&on);
        on.run(async move {
            let count = 20_000;
            for sector in 0..count {
                inner.ask_for(sector);
                inner.done().await;
            }
            let found = inner.sim.now().0 as f64 / count as f64 / MS as f64;
            assert!((found / mean - 1.0).abs() < 0.03, "{found} of {mean}");
        });
    }
}

#[test]
fn nothing_is_done_in_a_stall() {
    let stalls = [(10, 5), (20, 100)];
    let stalls = stalls.map(|(from, length)| (Time(from * MS), Time(length * MS)));
    let config = FixedConfig {
        stalls: stalls.to_vec(),
        ..device(Service::Constant(Time(4 * MS)), (1, 1))
    };
    let on = bench(config);
    let inner = Rc::clone(&on);
    on.run(async move {
        let mut ends = Vec::new();
        for sector in 0..5 {
            inner.ask_for(sector);
            inner.done().await;
            ends.push(inner.sim.now().0 / MS);
        }
        // The third has done two of its four when the stall comes, the fourth one of
        // them before the second one.
        assert_eq!(ends, [4, 8, 17, 121, 125]);
    });
}
