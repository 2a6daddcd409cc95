//! One drive and a first-come queue against what queueing theory says of
//! them. These fail when time is lost or counted twice between two requests,
//! when a busy server idles, or when latency is not independent of the past.

use super::queueing::{Load, Measured, Service, Station};
use super::{EAGLE_RPM, drive, eagle};
use diskperf_device::BusyTimes;
use diskperf_sim::Time;

const REQUESTS: u64 = 200_000;

fn random_reads() -> Service {
    Service::Random {
        drive: Box::new(drive(eagle(), EAGLE_RPM)),
        sectors: 16,
    }
}

fn busy(service: &Service) -> BusyTimes {
    match service {
        Service::Random { drive, .. } => drive.busy_times(),
        Service::Constant(_) => panic!("a constant is no drive"),
    }
}

#[track_caller]
fn assert_close(one: f64, other: f64, share: f64) {
    assert!((one / other - 1.0).abs() <= share, "{one} is not {other}");
}

/// What holds of every run that starts and ends empty.
fn assert_laws(measured: &Measured) {
    // Little's law, exactly: the integral of the number in the system is the
    // sum of the times in it.
    assert_eq!(measured.area, measured.response);
    assert_eq!(measured.response, measured.waiting + measured.service);
    assert!(
        measured.service <= u128::from(measured.elapsed),
        "one at a time"
    );
    assert_eq!(measured.requests, REQUESTS);
}

#[test]
fn constant_service_waits_as_m_d_1() {
    let service = Time::from_millis(10);
    for apart_ms in [50, 20, 14, 12] {
        let load = Load::Poisson(Time::from_millis(apart_ms));
        let (measured, _) = Station::new(Service::Constant(service), load, 1).run(REQUESTS);
        assert_laws(&measured);
        let busy = measured.throughput() * service.0 as f64;
        assert_close(busy, 10.0 / apart_ms as f64, 0.01);
        let waiting = busy / (2.0 * (1.0 - busy)) * service.0 as f64;
        assert_close(measured.mean_waiting(), waiting, 0.04);
    }
}

#[test]
fn random_reads_wait_as_m_g_1() {
    for apart_ms in [100, 60, 45] {
        let load = Load::Poisson(Time::from_millis(apart_ms));
        let (measured, _) = Station::new(random_reads(), load, 1).run(REQUESTS);
        assert_laws(&measured);
        assert_close(
            measured.mean_waiting(),
            measured.pollaczek_khinchine(),
            0.05,
        );
    }
}

#[test]
fn a_random_read_is_seek_half_a_revolution_and_its_sectors() {
    let (measured, service) = Station::new(random_reads(), Load::Closed(1), 1).run(REQUESTS);
    assert_laws(&measured);
    let drive = drive(eagle(), EAGLE_RPM);
    let period = drive.spindle().revolution_time().0 as f64;
    // One of 842 requests finds the arm where it wants it; a third of a block
    // crosses a track's end, where nothing is lost without skew.
    let seek = 18e6 * (1.0 - 1.0 / 842.0);
    let transfer = period * 16.0 / 48.0;
    assert_close(
        measured.mean_service(),
        seek + period / 2.0 + transfer,
        0.005,
    );
    let busy = busy(&service);
    let each = |time: Time| time.0 as f64 / REQUESTS as f64;
    assert_close(each(busy.positioning_time), seek, 0.005);
    assert_close(each(busy.rotational_latency_time), period / 2.0, 0.005);
    assert_close(each(busy.transfer_time), transfer, 1e-6);
    assert_eq!(
        (busy.transfer_count, busy.transferred_bytes),
        (REQUESTS, REQUESTS * 8192)
    );
}

#[test]
fn utilisation_is_busy_time_by_elapsed() {
    for load in [Load::Poisson(Time::from_millis(60)), Load::Closed(4)] {
        let (measured, service) = Station::new(random_reads(), load, 1).run(REQUESTS);
        assert_laws(&measured);
        let busy = busy(&service);
        let total = busy.positioning_time + busy.rotational_latency_time + busy.transfer_time;
        assert_eq!(
            u128::from(total.0),
            measured.service,
            "the drive and the queue agree"
        );
        let utilisation = total.0 as f64 / measured.elapsed as f64;
        let expected = match load {
            Load::Closed(_) => 1.0,
            Load::Poisson(apart) => measured.mean_service() / apart.0 as f64,
        };
        assert_close(utilisation, expected, 0.01);
    }
}

#[test]
fn a_closed_queue_stays_within_its_bounds() {
    for outstanding in [1_u32, 2, 8, 50] {
        let (measured, _) =
            Station::new(random_reads(), Load::Closed(outstanding), 1).run(REQUESTS);
        assert_laws(&measured);
        // With no thinking in between the server never idles, so both bounds
        // are reached: throughput 1 / service, response Q services.
        assert_eq!(u128::from(measured.elapsed), measured.service);
        let mean = measured.mean_service();
        assert_close(measured.throughput(), 1.0 / mean, 1e-9);
        assert_close(
            measured.mean_response(),
            f64::from(outstanding) * mean,
            0.001,
        );
    }
}
