//! Drives by themselves: what a program is served, and what it is refused.

use super::*;
use diskperf_machine::{
    Budget, Errno, Exceeded, From, RingCompletion, RingOperation, RingRequest, RingSize, Standstill,
};
use diskperf_timeline::Stage;

const RIGS: [&str; 4] = [
    "bare-fixed",
    "bare-nvme-tlc",
    "bare-sata-7200",
    "bare-smr-5400",
];
const BOTH: How = How {
    write: true,
    direct: true,
    ..READ
};
const MIB: usize = 1 << 20;

/// Carries out one request of a ring.
async fn one(session: &mut Session, request: RingRequest) -> Result<u32, Errno> {
    session.submit(&[request]).await.expect("a ring");
    let mut completions = Vec::new();
    let reaped = session.reap(1, None, &mut completions).await;
    reaped.expect("a ring");
    let [RingCompletion { result, .. }] = completions[..] else {
        panic!("{completions:?}")
    };
    result
}

/// What is written is read back, by calls and by a ring, however many commands it takes; what
/// is discarded is zeroes.
#[test]
fn a_rig_keeps_what_is_written_and_forgets_what_is_discarded() {
    for system in RIGS {
        let machine = machine(&specification(system, &[]));
        let found = run(&machine, async move |session: &mut Session| {
            let file = session.open("/dev/drive0", BOTH).await.expect("the drive");
            let data: Vec<u8> = (0..40 * MIB).map(|byte| (byte % 251) as u8).collect();
            session.lseek(file, 4096, From::Start).await.expect("there");
            assert_eq!(session.write(file, &data).await, Ok(data.len()));
            session.fsync(file).await.expect("a drive");
            let size = RingSize {
                depth: 2,
                buffer_bytes: data.len() as u32,
            };
            session.open_ring(size, &[file]).await.expect("a ring");
            let request = |operation, offset, bytes: usize| RingRequest {
                operation,
                file,
                offset,
                bytes: bytes as u32,
                slot: 1,
            };
            let lend = |session: &Session, bytes: Vec<u8>| {
                let contents = session.ring_contents(1).expect("a ring");
                contents.replace(bytes)
            };
            lend(session, vec![1; data.len()]);
            let read = request(RingOperation::Read, 4096, data.len());
            assert_eq!(one(session, read).await, Ok(data.len() as u32));
            assert!(lend(session, Vec::new()) == data, "{system}");
            let discard = request(RingOperation::Discard, 4096 + 4096, MIB);
            assert_eq!(one(session, discard).await, Ok(0));
            session.lseek(file, 4096, From::Start).await.expect("there");
            let mut into = vec![1; 2 * MIB];
            assert_eq!(session.read(file, &mut into).await, Ok(into.len()));
            let zeroes = 4096..4096 + MIB;
            assert!(into[zeroes.clone()].iter().all(|byte| *byte == 0));
            assert_eq!(into[..zeroes.start], data[..zeroes.start]);
            assert_eq!(into[zeroes.end..], data[zeroes.end..2 * MIB]);
            session.now()
        });
        assert!(found > Time::ZERO, "{system}");
        let requests = machine.statistics().drives[0].requests;
        assert!(requests >= 4, "{system}: {requests}");
    }
}

/// A drive has no files: who asks for one is told what a kernel without file systems says.
#[test]
fn a_rig_has_no_files() {
    for system in RIGS {
        run(&machine(&specification(system, &[])), async |session| {
            let none = Err(Errno::NoEntry);
            assert_eq!(
                session.open("/mnt0/file", CREATE).await,
                Err(Errno::NoEntry)
            );
            assert_eq!(session.open("/dev/drive7", BOTH).await, Err(Errno::NoEntry));
            assert_eq!(session.mkdir("/mnt0/folder").await, none);
            assert_eq!(session.unlink("/mnt0/file").await, none);
            assert_eq!(session.rename("/mnt0/file", "/mnt0/other").await, none);
            assert_eq!(session.stat("/mnt0/file").await, Err(Errno::NoEntry));
            assert_eq!(session.pipe_end(0).await, Err(Errno::BadFile));
            let file = session.open("/dev/drive0", BOTH).await.expect("the drive");
            let length = session.length(file).await.expect("it is open");
            assert_eq!(session.ftruncate(file, 0).await, Err(Errno::Invalid));
            assert_eq!(session.ftruncate(file + 1, 0).await, Err(Errno::BadFile));
            assert_eq!(session.write(file, &[0; 100]).await, Err(Errno::Invalid));
            let end = session.lseek(file, 0, From::End).await;
            assert_eq!(end, Ok(length));
            assert_eq!(session.write(file, &[0; 4096]).await, Err(Errno::NoSpace));
            assert_eq!(session.read(file, &mut [0; 4096]).await, Ok(0));
            assert_eq!(session.close(file).await, Ok(()));
            assert_eq!(session.close(file).await, Err(Errno::BadFile));
            assert_eq!(session.resident_bytes("/dev/drive0", 4096).await, Ok(0));
        });
    }
}

/// Nothing but the drive takes time, and nobody but a program asks it for anything.
#[test]
fn a_rig_takes_no_time_of_its_own() {
    for system in RIGS {
        let machine = machine(&specification(system, &[]));
        let account = run(&machine, async |session: &mut Session| {
            session.open_account();
            let file = session.open("/dev/drive0", BOTH).await.expect("the drive");
            for _ in 0..100 {
                session.read(file, &mut [0; 4096]).await.expect("a read");
            }
            session
                .sleep_until(session.now() + Time::from_millis(2000))
                .await;
            session.compute(Time::from_millis(3)).await;
            session.account()
        });
        assert_eq!(
            (account.user, account.system),
            (Time::from_millis(3), Time::ZERO)
        );
        for stage in [
            Stage::SystemCall,
            Stage::Copy,
            Stage::Driver,
            Stage::DriverQueue,
            Stage::Interrupt,
            Stage::CpuWait,
            Stage::BufferWait,
            Stage::MemoryContention,
        ] {
            assert_eq!(account.ledger.stage(stage).0, 0, "{system}: {stage:?}");
        }
        assert_eq!(
            account.ledger.stage(Stage::Think).0,
            2_000_000_000,
            "{system}"
        );
        assert_eq!(machine.statistics().drives[0].requests, 100, "{system}");
        assert_eq!(account.storage_read_bytes, 100 * 4096, "{system}");
    }
}

/// A run on a rig ends within its budget, whatever its programs are at.
#[test]
fn a_rig_has_a_budget() {
    let budgets = [
        Budget {
            events: 5000,
            ..Budget::NONE
        },
        Budget {
            time: Time::from_millis(100),
            ..Budget::NONE
        },
        Budget {
            bytes: 4 << 20,
            ..Budget::NONE
        },
    ];
    for (budget, kind) in budgets.into_iter().zip(["events", "time", "memory"]) {
        let circumstances = Circumstances {
            budget,
            ..Circumstances::default()
        };
        let specification = specification("bare-fixed", &[("drive.service_ms", "0.1")]);
        let machine = Machine::build(&specification, circumstances);
        start(&machine, 0, async |session: &mut Session| {
            let file = session.open("/dev/drive0", BOTH).await.expect("the drive");
            for byte in 0..4_u8 {
                for at in 0..10_000 {
                    let place = 4096 * at + 512 * i64::from(byte);
                    let there = session.lseek(file, place, From::Start).await;
                    there.expect("a place");
                    session.write(file, &[byte; 1024]).await.expect("room");
                }
            }
        });
        let found = machine.run();
        let found = match found {
            Err(Standstill::Exceeded(Exceeded::Events { .. })) => "events",
            Err(Standstill::Exceeded(Exceeded::Time { .. })) => "time",
            Err(Standstill::Exceeded(Exceeded::Memory { .. })) => "memory",
            other => panic!("{kind}: {other:?}"),
        };
        assert_eq!(found, kind);
    }
}
