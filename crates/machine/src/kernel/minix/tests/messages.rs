//! The rendezvous: who waits for whom, and what it costs.

use super::super::call_account::CallAccount;
use super::super::message::{AcceptedSenders, Endpoint, MessageBody, MessageParty};
use crate::kernel::minix::MinixKernel;
use crate::kernel::process::Process;
use crate::software::Kernel;
use crate::specification::MachineSpecification;
use crate::{Machine, RunConditions, Time};
use diskperf_catalogue::Catalogue;
use std::cell::RefCell;
use std::rc::Rc;

fn machine() -> Machine {
    let system = Catalogue::embedded().resolve("atarist-supra", &[]).unwrap();
    let (specification, _) = MachineSpecification::read_machine(system).unwrap();
    Machine::build(&specification, RunConditions::default())
}

fn kernel(machine: &Machine) -> Rc<MinixKernel> {
    match machine.kernel() {
        Kernel::Minix(minix) => Rc::clone(minix),
        _ => panic!("an Atari ST runs Minix"),
    }
}

fn party(kernel: &Rc<MinixKernel>, number: usize) -> MessageParty {
    let me = MessageParty {
        endpoint: Endpoint::UserProgram(number),
        process: Process::new(number),
    };
    kernel.message_exchange.register(me.endpoint, &me.process);
    me
}

type Log = Rc<RefCell<Vec<(usize, usize)>>>;

/// A sender comes before its receiver, or after it: the message passes when
/// both are there, and the sender goes on no earlier.
#[test]
fn a_message_passes_when_both_have_come() {
    for receiver_first in [true, false] {
        let machine = machine();
        let kernel = kernel(&machine);
        let parties = [party(&kernel, 0), party(&kernel, 1)];
        let log = Log::default();
        for sends in [receiver_first, !receiver_first] {
            let (kernel, log) = (Rc::clone(&kernel), Rc::clone(&log));
            let me = parties[usize::from(sends)].clone();
            let to = parties[0].endpoint;
            machine.spawn_process("party", async move {
                kernel.begin_process(&me.process).await;
                if sends {
                    let account = CallAccount::new_at(kernel.simulation.now());
                    kernel
                        .send_message(&me, to, &account, MessageBody::CopyReply)
                        .await;
                    assert_eq!(account.marked_until(), kernel.simulation.now());
                    log.borrow_mut().push((1, 0));
                } else {
                    let message = kernel
                        .receive_message(&me, AcceptedSenders::AnySender)
                        .await;
                    assert!(matches!(message.body, MessageBody::CopyReply));
                    log.borrow_mut().push((0, 1));
                }
                kernel.end_process(&me.process);
            });
        }
        machine.run_to_end().unwrap();
        assert_eq!(log.borrow().len(), 2);
        assert_eq!(machine.current_time(), kernel.config.message_time);
    }
}

/// Three ask one who answers: each gets its own answer, in the order of
/// coming, and the one who answers never waits for those who asked.
#[test]
fn each_who_asks_gets_its_own_answer() {
    let machine = machine();
    let kernel = kernel(&machine);
    let parties: Vec<MessageParty> = (0..4).map(|number| party(&kernel, number)).collect();
    let server = parties[0].clone();
    let log = Log::default();
    for me in parties[1..].iter().cloned() {
        let (kernel, log, to) = (Rc::clone(&kernel), Rc::clone(&log), server.endpoint);
        machine.spawn_process("asker", async move {
            kernel.begin_process(&me.process).await;
            for round in 0..3 {
                let begin = kernel.simulation.now();
                let account = CallAccount::new_at(begin);
                let asked = me.process.pid * 10 + round;
                let answer = kernel
                    .send_and_receive(&me, to, &account, MessageBody::CopyRequest(asked))
                    .await;
                let MessageBody::DeviceReply(Ok(answer)) = answer else {
                    panic!("an answer")
                };
                assert_eq!(answer, asked + 100);
                assert_eq!(
                    account.marked_until(),
                    kernel.simulation.now(),
                    "all time is accounted for"
                );
                log.borrow_mut().push((round, me.process.pid));
            }
            kernel.end_process(&me.process);
        });
    }
    machine.spawn_process("server", {
        let kernel = Rc::clone(&kernel);
        async move {
            kernel.begin_process(&server.process).await;
            for _ in 0..9 {
                let message = kernel
                    .receive_message(&server, AcceptedSenders::AnySender)
                    .await;
                let MessageBody::CopyRequest(asked) = message.body else {
                    panic!("a question")
                };
                let answer = MessageBody::DeviceReply(Ok(asked + 100));
                kernel
                    .send_message(&server, message.sender, &message.account, answer)
                    .await;
            }
            kernel.end_process(&server.process);
        }
    });
    machine.run_to_end().unwrap();
    let rounds: Vec<usize> = log.borrow().iter().map(|(round, _)| *round).collect();
    assert_eq!(rounds, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    // Nine questions and nine answers, and nothing else.
    let message = kernel.config.message_time;
    assert_eq!(machine.current_time(), Time(18 * message.0));
}

/// A receiver that waits for one takes nothing from others meanwhile.
#[test]
fn a_receiver_may_wait_for_one_alone() {
    let machine = machine();
    let kernel = kernel(&machine);
    let parties: Vec<MessageParty> = (0..3).map(|number| party(&kernel, number)).collect();
    let order = Log::default();
    for me in parties[1..].iter().cloned() {
        let (kernel, to) = (Rc::clone(&kernel), parties[0].endpoint);
        machine.spawn_process("sender", async move {
            kernel.begin_process(&me.process).await;
            let account = CallAccount::new_at(kernel.simulation.now());
            let body = MessageBody::CopyRequest(me.process.pid);
            kernel.send_message(&me, to, &account, body).await;
            kernel.end_process(&me.process);
        });
    }
    machine.spawn_process("receiver", {
        let (kernel, order, me) = (Rc::clone(&kernel), Rc::clone(&order), parties[0].clone());
        async move {
            kernel.begin_process(&me.process).await;
            for accepts in [
                AcceptedSenders::OnlySender(Endpoint::UserProgram(2)),
                AcceptedSenders::AnySender,
            ] {
                let message = kernel.receive_message(&me, accepts).await;
                let MessageBody::CopyRequest(number) = message.body else {
                    panic!("a number")
                };
                order.borrow_mut().push((number, number));
            }
            kernel.end_process(&me.process);
        }
    });
    machine.run_to_end().unwrap();
    assert_eq!(*order.borrow(), [(2, 2), (1, 1)]);
}
