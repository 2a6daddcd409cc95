use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_machine::specification::Specification;
use diskperf_machine::*;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Copy, PartialEq)]
enum Prog { W4, W8, R, RW }

async fn program(s: &mut Session, prog: Prog, path: &str, buf: &mut [u8]) -> (f64, f64, diskperf_timeline::Ledger) {
    if matches!(prog, Prog::W4 | Prog::W8) {
        let _ = s.unlink(path).await;
    }
    s.barrier().await;
    s.open_account();
    let t0 = s.now();
    let how = match prog {
        Prog::W4 | Prog::W8 => How { write: true, create: true, truncate: true, ..How::default() },
        Prog::R => How { read: true, ..How::default() },
        Prog::RW => How { read: true, write: true, ..How::default() },
    };
    let f = s.open(path, how).await.unwrap();
    let n = if prog == Prog::W4 { 4096 } else { 8192 };
    for _ in 0..(8 << 20) / n {
        let k = if prog == Prog::R { s.read(f, &mut buf[..n]).await } else { s.write(f, &buf[..n]).await };
        assert_eq!(k, Ok(n));
    }
    let t = (s.now() - t0).seconds();
    let a = s.account();
    s.close(f).await.unwrap();
    (8192.0 / t, (a.user + a.system).seconds() / t * 100.0, a.ledger)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let drives: usize = args[2].parse().unwrap();
    let verbose = args.iter().any(|a| a == "-v");
    let settings: Vec<Setting> = args[3..].iter().filter(|a| a.contains('=')).map(|a| { let (p, t) = a.split_once('=').unwrap(); Setting { path: p.into(), text: t.into() } }).collect();
    let system = Catalogue::embedded().resolve(&args[1], &settings).unwrap_or_else(|e| panic!("{e}"));
    let (spec, _) = Specification::read(system).unwrap_or_else(|e| panic!("{e}"));
    let start = std::time::Instant::now();
    let m = Machine::build(&spec, Circumstances { drives, phase: 1 << 30, speed_difference: 0.003, ..Circumstances::default() });
    let out = Rc::new(RefCell::new(Vec::new()));
    let meeting = Rendezvous::new(drives);
    for d in 0..drives {
        let k = Rc::clone(m.kernel());
        let out = Rc::clone(&out);
        let meeting = Rc::clone(&meeting);
        m.spawn(&format!("w{d}"), async move {
            let mut s = Session::begin(&k, d, vec![], &meeting).await;
            let mut buf = vec![7u8; 8192];
            s.mkdir(&format!("/mnt{d}/foo")).await.unwrap();
            for (name, p) in [("w4", Prog::W4), ("w8", Prog::W8), ("rd", Prog::R), ("rw", Prog::RW)] {
                for run in 0..3 {
                    let r = program(&mut s, p, &format!("/mnt{d}/foo/tst2"), &mut buf).await;
                    out.borrow_mut().push((name, run, d, r));
                }
            }
            s.end().await;
        });
    }
    m.run().unwrap_or_else(|e| panic!("{e}"));
    let took = start.elapsed();
    for n in ["rd", "w4", "w8", "rw"] {
        for run in 1..3 {
            let o = out.borrow();
            let rs: Vec<_> = o.iter().filter(|x| x.0 == n && x.1 == run).collect();
            let kb: f64 = rs.iter().map(|x| x.3.0).sum();
            let cpu: f64 = rs.iter().map(|x| x.3.1).sum();
            print!("{n} {kb:6.0} ({cpu:3.0}%)  ");
            if verbose { println!(); for e in rs[0].3.2.entries() { println!("      {:?} {:.1} ms/8K", e.stage, e.ns.0 as f64 / 1e6 / 1024.0); } }
        }
    }
    println!();
    for d in 0..drives { m.check(d).unwrap(); }
    println!("{took:?}; virtual {:.1}s", m.now().seconds());
}
