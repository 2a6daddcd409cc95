//! Drives by themselves: what a program is served, and what it is refused.

use super::*;
use diskperf_machine::{
    Errno, ExceededLimit, RingCompletion, RingOperation, RingRequest, RingSize, RunBudget,
    RunEndReason, SeekOrigin,
};
use diskperf_timeline::Stage;

const RIGS: [&str; 4] = [
    "bare-fixed",
    "bare-nvme-tlc",
    "bare-sata-7200",
    "bare-smr-5400",
];
const BOTH: OpenFlags = OpenFlags {
    write: true,
    direct_io: true,
    ..READ
};
const MIB: usize = 1 << 20;

/// Carries out one request of a ring.
async fn one(session: &mut Session, request: RingRequest) -> Result<u32, Errno> {
    session.submit_requests(&[request]).await.expect("a ring");
    let mut completions = Vec::new();
    let reaped = session.reap_completions(1, None, &mut completions).await;
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
            let file = session
                .open_path("/dev/drive0", BOTH)
                .await
                .expect("the drive");
            let data: Vec<u8> = (0..40 * MIB).map(|byte| (byte % 251) as u8).collect();
            session
                .lseek(file, 4096, SeekOrigin::FileStart)
                .await
                .expect("there");
            assert_eq!(session.write(file, &data).await, Ok(data.len()));
            session.fsync(file).await.expect("a drive");
            let size = RingSize {
                queue_depth: 2,
                buffer_bytes: data.len() as u32,
            };
            session.open_ring(size, &[file]).await.expect("a ring");
            let request = |operation, offset, bytes: usize| RingRequest {
                operation,
                file_number: file,
                offset_bytes: offset,
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
            session
                .lseek(file, 4096, SeekOrigin::FileStart)
                .await
                .expect("there");
            let mut into = vec![1; 2 * MIB];
            assert_eq!(session.read(file, &mut into).await, Ok(into.len()));
            let zeroes = 4096..4096 + MIB;
            assert!(into[zeroes.clone()].iter().all(|byte| *byte == 0));
            assert_eq!(into[..zeroes.start], data[..zeroes.start]);
            assert_eq!(into[zeroes.end..], data[zeroes.end..2 * MIB]);
            session.current_time()
        });
        assert!(found > Time::ZERO, "{system}");
        let requests = machine.statistics().drive_statistics[0].request_count;
        assert!(requests >= 4, "{system}: {requests}");
    }
}

/// A drive has no files: who asks for one is told what a kernel without file systems says.
#[test]
fn a_rig_has_no_files() {
    for system in RIGS {
        run(&machine(&specification(system, &[])), async |session| {
            let none = Err(Errno::NoSuchEntry);
            assert_eq!(
                session.open_path("/mnt0/file", CREATE).await,
                Err(Errno::NoSuchEntry)
            );
            assert_eq!(
                session.open_path("/dev/drive7", BOTH).await,
                Err(Errno::NoSuchEntry)
            );
            assert_eq!(session.mkdir("/mnt0/folder").await, none);
            assert_eq!(session.unlink("/mnt0/file").await, none);
            assert_eq!(session.rename("/mnt0/file", "/mnt0/other").await, none);
            assert_eq!(session.stat("/mnt0/file").await, Err(Errno::NoSuchEntry));
            assert_eq!(
                session.take_pipe_end(0).await,
                Err(Errno::BadFileDescriptor)
            );
            let file = session
                .open_path("/dev/drive0", BOTH)
                .await
                .expect("the drive");
            let length = session.file_length(file).await.expect("it is open");
            assert_eq!(
                session.ftruncate(file, 0).await,
                Err(Errno::InvalidArgument)
            );
            assert_eq!(
                session.ftruncate(file + 1, 0).await,
                Err(Errno::BadFileDescriptor)
            );
            assert_eq!(
                session.write(file, &[0; 100]).await,
                Err(Errno::InvalidArgument)
            );
            let end = session.lseek(file, 0, SeekOrigin::FileEnd).await;
            assert_eq!(end, Ok(length));
            assert_eq!(session.write(file, &[0; 4096]).await, Err(Errno::NoSpace));
            assert_eq!(session.read(file, &mut [0; 4096]).await, Ok(0));
            assert_eq!(session.close(file).await, Ok(()));
            assert_eq!(session.close(file).await, Err(Errno::BadFileDescriptor));
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
            let file = session
                .open_path("/dev/drive0", BOTH)
                .await
                .expect("the drive");
            for _ in 0..100 {
                session.read(file, &mut [0; 4096]).await.expect("a read");
            }
            session
                .sleep_until(session.current_time() + Time::from_millis(2000))
                .await;
            session.consume_user_time(Time::from_millis(3)).await;
            session.current_account()
        });
        assert_eq!(
            (account.user_cpu_time, account.system_cpu_time),
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
            assert_eq!(
                account.ledger.stage_duration(stage).0,
                0,
                "{system}: {stage:?}"
            );
        }
        assert_eq!(
            account.ledger.stage_duration(Stage::Think).0,
            2_000_000_000,
            "{system}"
        );
        assert_eq!(
            machine.statistics().drive_statistics[0].request_count,
            100,
            "{system}"
        );
        assert_eq!(account.storage_read_bytes, 100 * 4096, "{system}");
    }
}

/// A run on a rig ends within its budget, whatever its programs are at.
#[test]
fn a_rig_has_a_budget() {
    let budgets = [
        RunBudget {
            event_count_max: 5000,
            ..RunBudget::UNLIMITED
        },
        RunBudget {
            virtual_time_max: Time::from_millis(100),
            ..RunBudget::UNLIMITED
        },
        RunBudget {
            memory_bytes_max: 4 << 20,
            ..RunBudget::UNLIMITED
        },
    ];
    for (budget, kind) in budgets.into_iter().zip(["events", "time", "memory"]) {
        let circumstances = RunConditions {
            budget,
            ..RunConditions::default()
        };
        let specification = specification("bare-fixed", &[("drive.service_ms", "0.1")]);
        let machine = Machine::build(&specification, circumstances);
        start(&machine, 0, async |session: &mut Session| {
            let file = session
                .open_path("/dev/drive0", BOTH)
                .await
                .expect("the drive");
            for byte in 0..4_u8 {
                for at in 0..10_000 {
                    let place = 4096 * at + 512 * i64::from(byte);
                    let there = session.lseek(file, place, SeekOrigin::FileStart).await;
                    there.expect("a place");
                    session.write(file, &[byte; 1024]).await.expect("room");
                }
            }
        });
        let found = machine.run_to_end();
        let found = match found {
            Err(RunEndReason::LimitExceeded(ExceededLimit::Events { .. })) => "events",
            Err(RunEndReason::LimitExceeded(ExceededLimit::Time { .. })) => "time",
            Err(RunEndReason::LimitExceeded(ExceededLimit::Memory { .. })) => "memory",
            other => panic!("{kind}: {other:?}"),
        };
        assert_eq!(found, kind);
    }
}
