//! The toy kernel through the machine, from the catalogue.

use crate::specification::Specification;
use crate::{Circumstances, How, Machine, Rendezvous, Session, Time};
use diskperf_catalogue::{Catalogue, Setting};
use std::cell::Cell;
use std::rc::Rc;

/// What was written is read back, and each request takes the device's time at least.
#[test]
fn a_process_reads_what_it_wrote_through_the_driver() {
    let setting = |(path, text): (&str, &str)| Setting {
        path: path.to_string(),
        text: text.to_string(),
    };
    let settings = [("kernel.kind", "toy"), ("filesystem", "none")].map(setting);
    let system = Catalogue::embedded().resolve("vax780-fixed", &settings);
    let (specification, _) = Specification::read(system.expect("a system")).expect("a system");
    let machine = Machine::build(&specification, Circumstances::default());
    let kernel = machine.kernel().clone();
    let ended = Rc::new(Cell::new(Time::ZERO));
    let inner = Rc::clone(&ended);
    machine.spawn("process", async move {
        let meeting = Rc::new(Rendezvous::new(1));
        let mut session = Session::begin(&kernel, 0, Vec::new(), &meeting).await;
        session.open_account();
        let how = How {
            read: true,
            write: true,
            ..How::default()
        };
        let drive = session.open("/dev/drive0", how).await.expect("a drive");
        let data = vec![0x5a; 8192];
        assert_eq!(session.write(drive, &data[..]).await, Ok(8192));
        let start = crate::From::Start;
        assert_eq!(session.lseek(drive, 0, start).await, Ok(0));
        let mut read = vec![0; 8192];
        assert_eq!(session.read(drive, &mut read).await, Ok(8192));
        assert_eq!(read, data);
        let account = session.account();
        assert_eq!(account.storage_read_bytes, 8192);
        inner.set(session.now());
        session.end().await;
    });
    machine.run().expect("the process ends");
    let statistics = machine.statistics();
    let busy = machine.drives_busy();
    assert_eq!((busy[0].transfers, busy[0].bytes), (2, 16_384));
    assert!(ended.get() > Time::ZERO, "{statistics:?}");
}
